// A table of text and numbers: sorted and filtered here, so that neither asks the server. Vue escapes every cell.
export default {
  template: `
    <div class="scroll" tabindex="0" role="region" :aria-label="label">
      <table :class="['numbers', { tight: pointing }]">
        <caption class="hidden">{{ label }}</caption>
        <thead><tr>
          <th v-if="choosable" scope="col"><span class="hidden">compare</span></th>
          <th v-for="c in columns" :key="c.name" scope="col" :class="c.align"
              :aria-sort="by === c.name ? (down ? 'descending' : 'ascending') : null">
            <button v-if="sortable" type="button" @click="sortBy(c)">{{ c.label }}<span aria-hidden="true">{{
              by === c.name ? (down ? ' ↓' : ' ↑') : '' }}</span></button>
            <template v-else>{{ c.label }}</template>
          </th>
        </tr></thead>
        <tbody>
          <tr v-for="r in shown" :key="r.key" :class="{ chosen: r.chosen, marked: r.marked }"
              @mouseenter="pointing && pointAt(+r.key)" @mouseleave="pointing && pointAt(null)">
            <td v-if="choosable"><input type="checkbox" :checked="r.chosen" :aria-label="'compare ' + r.key"
                @change="$emit('choose', { key: r.key, on: $event.target.checked })"></td>
            <td v-for="(c, i) in columns" :key="c.name" :class="c.align">
              <span v-if="c.dot && r.colour" class="dot" :style="{ background: r.colour }" aria-hidden="true"></span>
              <button v-if="c.opens" type="button" class="link" @click="$emit('open', r.key)">{{ r[c.name] }}</button>
              <span v-else-if="c.tag" class="tag" :class="r.tone">{{ r[c.name] }}</span>
              <template v-else-if="i > 0">{{ r[c.name] }}</template>
              <template v-else v-for="(piece, n) in pieces(r[c.name])" :key="n">{{ piece }}<wbr></template>
              <span v-if="i === 0 && r.note" class="note">{{ r.note }}</span>
            </td>
          </tr>
        </tbody>
      </table>
      <p v-if="rows.length && !shown.length" class="muted">Nothing matches.</p>
      <p v-if="shown.length < matching" class="muted">The first {{ shown.length }} of {{ matching }}.
        <button type="button" class="link" @click="most = Infinity">Show all</button></p>
    </div>`,
  props: { columns: Array, rows: Array, label: String, choosable: Boolean, sortable: Boolean, pointing: Boolean, filter: String,
    first: Number },
  emits: ["choose", "open"],
  data() { return { by: null, down: false, most: this.first }; },
  computed: {
    found() {
      const words = (this.filter || "").toLowerCase().split(/\s+/).filter(Boolean);
      const text = (r) => this.columns.map((c) => r[c.name]).join(" ").toLowerCase();
      const found = this.rows.filter((r) => words.every((w) => text(r).includes(w)));
      if (this.by === null) return found;
      const key = (r) => (r.sort && this.by in r.sort ? r.sort[this.by] : r[this.by]);
      const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), undefined, { numeric: true }));
      return found.toSorted((a, b) => (this.down ? -1 : 1) * order(key(a) ?? -Infinity, key(b) ?? -Infinity));
    },
    matching() { return this.found.length; },
    shown() { return this.found.slice(0, this.most); },
  },
  methods: {
    pointAt,
    pieces(text) { return String(text).split(/(?<=[._])/); },  // lines may break between them
    sortBy(c) {
      this.down = this.by === c.name ? !this.down : c.align === "right";
      this.by = c.name;
    },
  },
};
