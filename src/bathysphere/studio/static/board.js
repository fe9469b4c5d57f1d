// The world as it is now. On it what every action is worth and, for the one that is pointed at, the line that is
// expected after it; pointing at an action elsewhere on the page (pointAt) does the same.
const UNITS = 430; // width of the drawing
const DISC = 21;
export default {
  template: `
    <div class="board-and-line">
      <div class="board large layers">
        <img v-if="src" class="board" :src="src" :alt="alt" @load="measure">
        <img v-if="ghost" class="ghost" :src="ghost" alt="">
        <svg v-if="height" class="drawn" :viewBox="'0 0 ' + units + ' ' + height" aria-hidden="true">
          <g v-if="drawn" :class="['expected', { pointed: pointed !== null }]">
            <polyline :points="path" class="under"/><polyline :points="path"/>
            <circle v-for="(p, i) in stops" :key="i" :cx="p.x" :cy="p.y" :r="p.r"/>
            <text v-for="(p, i) in stops.filter((p) => p.n)" :key="'n' + i" :x="p.x" :y="p.y + 3.5">{{ p.n }}</text>
          </g>
          <g v-for="m in placed" :key="m.action" :class="['mark', { chosen: m.chosen, quiet: pointed !== null }]"
             @click="$emit('play', m.action)" @mouseenter="point(m.action)" @mouseleave="point(null)">
            <circle class="halo" :cx="m.x" :cy="m.y" :r="disc + 11 * m.unsure"/>
            <circle class="disc" :cx="m.x" :cy="m.y" :r="disc"/>
            <circle v-if="m.votes" class="votes" :cx="m.x" :cy="m.y" :r="disc - 1.75" pathLength="1"
                    :stroke-dasharray="m.votes + ' 1'" :transform="'rotate(-90 ' + m.x + ' ' + m.y + ')'"/>
            <text class="value" :x="m.x" :y="m.y + 1">{{ m.value }}</text>
            <text class="std" :x="m.x" :y="m.y + 11.5">{{ m.std }}</text>
          </g>
        </svg>
      </div>
      <p v-if="line" class="line"><b>{{ shown === pointed ? "After that step:" : "It expects:" }}</b> {{ line.text }}</p>
      <div v-if="line && line.pictures.length" class="strip" tabindex="0" role="region" aria-label="The line in pictures">
        <figure v-for="(picture, i) in line.pictures" :key="i">
          <img :src="picture" :alt="'in ' + line.steps[i] + ' steps'" loading="lazy">
          <figcaption>{{ line.steps[i] }}</figcaption>
        </figure>
      </div>
    </div>`,
  props: { src: String, alt: String, marks: Array, lines: Object, chosen: Number, on: Boolean },
  emits: ["play"],
  data: () => ({ heard: null, ratio: 0, units: UNITS, disc: DISC }),
  mounted() {
    this.hear = (event) => { this.heard = event.detail; };
    window.addEventListener("pointed", this.hear);
  },
  unmounted() { window.removeEventListener("pointed", this.hear); },
  computed: {
    height() { return this.ratio * UNITS; },
    pointed() { return this.heard !== null && this.lines?.[this.heard] ? this.heard : null; },
    shown() { return this.pointed ?? this.chosen; },
    line() { return this.on || this.pointed !== null ? this.lines?.[this.shown] ?? null : null; },
    drawn() { return this.line !== null && this.line.points.length > 1; },
    ghost() { return this.drawn && this.pointed !== null ? this.line.end : null; },
    points() { return this.drawn ? this.line.points.map(([y, x]) => ({ x: x * UNITS, y: y * this.height })) : []; },
    path() { return this.points.map((p) => p.x + "," + p.y).join(" "); },
    stops() { // one for each place, with the number of the step that comes there last if there is room for it
      const last = new Map();
      this.points.forEach((p, i) => { if (i) last.set(p.x + "," + p.y, { ...p, n: i }); });
      const step = this.points.length > 1 ? Math.hypot(this.points[1].x - this.points[0].x, this.points[1].y - this.points[0].y) : 0;
      const end = this.points.length - 1;
      return [...last.values()].map((p) => (this.pointed !== null && step > 22 ? { ...p, r: 9.5 }
        : { x: p.x, y: p.y, r: p.n === end ? 5 : 0 })).filter((p) => p.r);
    },
    placed() { // beside the one who acts; farther away on large boards, so that the discs stay apart
      if (!this.on || !this.marks?.length) return [];
      const from = this.marks.map((m) => this.at(m.from));
      return this.marks.map((m, i) => {
        const to = this.at(m.at), dx = to.x - from[i].x, dy = to.y - from[i].y;
        const away = Math.max(Math.hypot(dx, dy), 2 * DISC) / (Math.hypot(dx, dy) || 1);
        const inside = (value, top) => Math.min(Math.max(value, DISC + 2), top - DISC - 2);
        return { ...m, x: inside(from[i].x + dx * away, UNITS), y: inside(from[i].y + dy * away, this.height) };
      });
    },
  },
  methods: {
    at([y, x]) { return { x: x * UNITS, y: y * this.height }; },
    measure(event) { this.ratio = event.target.naturalHeight / event.target.naturalWidth; },
    point(action) { this.heard = action; },
  },
};
