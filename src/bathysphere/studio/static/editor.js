// A board to draw on, by mouse, finger or keyboard; what a stroke does to a cell is decided by the server.
export default {
  template: `
    <div>
      <div class="tools" role="toolbar" aria-label="Tools">
        <button v-for="(code, name) in tools" :key="name" type="button" :aria-label="name" :title="name"
                :aria-pressed="tool === name" :style="face(code)" @click="tool = name"></button>
      </div>
      <div class="editor" role="group" aria-label="Board" :style="{ gridTemplateColumns: 'repeat(' + width + ', 1fr)' }"
           @pointerleave="down = false" @pointerup="down = false">
        <template v-for="(row, y) in grid" :key="y">
          <button v-for="(code, x) in row" :key="x" type="button" :style="face(code)"
                  :aria-label="'row ' + (y + 1) + ', column ' + (x + 1) + ': ' + names[code]"
                  @pointerdown.prevent="down = true; put(y, x)" @pointerenter="down && put(y, x)"
                  @keydown.enter.prevent="put(y, x)" @keydown.space.prevent="put(y, x)"></button>
        </template>
      </div>
    </div>`,
  props: { grid: Array, tiles: Array, tools: Object },
  emits: ["paint"],
  data: () => ({ tool: "box", down: false,
    names: ["wall", "floor", "target", "box on target", "box", "player", "player on target"] }),
  computed: { width() { return this.grid.length ? this.grid[0].length : 1; } },
  methods: {
    face(code) { return { backgroundImage: "url(" + this.tiles[code] + ")" }; },
    put(row, column) { this.$emit("paint", { row, column, tool: this.tool }); },
  },
};
