"""Toy Montezuma's Revenge as a person would explain it: rooms in a dict, a list for each kind of thing."""

DIRECTIONS = [(0, -1), (1, 0), (0, 1), (-1, 0)]  # north, east, south, west


class ToyMontezumaOracle:
    num_actions = 4

    def __init__(self, map_text, max_lives=1, trap_reward=0.0, key_reward=0.0, door_reward=0.0):
        header, picture = {}, []
        for line in map_text.splitlines():
            if ":" in line and not line.startswith(";"):
                name, value = line.split(":")
                header[name] = [int(part) for part in value.replace("x", ",").split(",")]
            elif line and not line.startswith(";"):
                picture.append(line)
        self.width, self.height = header["room size"]
        first_x, first_y = header["first room"]
        self.rooms = {}
        for top in range(0, len(picture), self.height):
            for left in range(0, len(picture[0]), self.width):
                room = [row[left : left + self.width] for row in picture[top : top + self.height]]
                self.rooms[first_x + left // self.width, first_y + top // self.height] = room
        self.doors = sorted(self.find("D"))
        self.keys = sorted(self.find("k"))
        self.max_lives = max_lives
        self.trap_reward, self.key_reward, self.door_reward = trap_reward, key_reward, door_reward

    def find(self, char):
        """Returns (room, cell) of every `char`, each (x, y)."""
        return [
            (name, (x, y))
            for name, room in self.rooms.items()
            for y, line in enumerate(room)
            for x, here in enumerate(line)
            if here == char
        ]

    def start(self):
        [(room, cell)] = self.find("@")
        row = [*room, 0, *cell, *[1] * len(self.doors), *[1] * len(self.keys), self.max_lives, 0]
        return bytes(row + (list(cell) if self.max_lives > 1 else []))

    def step(self, row, action):
        """Returns the next row, the reward, terminal and solved."""
        num_doors, num_keys = len(self.doors), len(self.keys)
        room, held, cell = (row[0], row[1]), row[2], (row[3], row[4])
        closed = list(row[5 : 5 + num_doors])
        present = list(row[5 + num_doors : 5 + num_doors + num_keys])
        lives, over, *entry = row[5 + num_doors + num_keys :]
        reward = 0.0
        if not over:
            target_room, target = self.target(room, cell, DIRECTIONS[action])
            tile = self.rooms[target_room][target[1]][target[0]] if target_room in self.rooms else "-"
            enter = tile in ".@GkD"
            if tile == "^":
                lives -= 1
                reward = self.trap_reward
                if lives == 0:
                    over = 1
                else:
                    cell = tuple(entry)
            if tile == "k":
                key = self.keys.index((target_room, target))
                if present[key]:
                    present[key] = 0
                    held += 1
                    reward = self.key_reward
            if tile == "D":
                door = self.doors.index((target_room, target))
                if closed[door] and held:
                    closed[door] = 0
                    held -= 1
                    reward = self.door_reward
                elif closed[door]:
                    enter = False
            if tile == "G":
                over = 1
                reward = 1.0
            if enter:
                if target_room != room and entry:
                    entry = target
                room, cell = target_room, target
        solved = bool(over) and self.rooms[room][0][0] == "G"
        return bytes([*room, held, *cell, *closed, *present, lives, over, *entry]), reward, bool(over), solved

    def target(self, room, cell, direction):
        """Returns the room and cell one step away; an edge leads to the opposite edge of the next room."""
        x, y = cell[0] + direction[0], cell[1] + direction[1]
        if x == -1:
            return (room[0] - 1, room[1]), (self.width - 1, y)
        if x == self.width:
            return (room[0] + 1, room[1]), (0, y)
        if y == -1:
            return (room[0], room[1] - 1), (x, self.height - 1)
        if y == self.height:
            return (room[0], room[1] + 1), (x, 0)
        return room, (x, y)


def successor_calls(domain, states):
    """Returns calls for `bathysphere bench`, each of which computes one successor of one of `states`."""
    with open(domain.world.source, encoding="utf-8") as file:
        twin = ToyMontezumaOracle(file.read())
    rows = [state.tobytes() for state in states]
    return [lambda row=row, a=a: twin.step(row, a) for row in rows for a in range(twin.num_actions)]
