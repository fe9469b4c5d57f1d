// A number between two others, and the number beside it. Tells the server at most ten times a second.
export default {
  template: `
    <label class="field slider"><span>{{ label }} <b>{{ told }}</b></span>
      <input type="range" :min="low" :max="high" :step="step" :value="now" :disabled="disabled || high <= low"
             :aria-valuetext="told" @input="slide($event.target.value)">
    </label>`,
  props: { label: String, low: Number, high: Number, step: Number, value: Number, names: Array, disabled: Boolean },
  emits: ["slide"],
  data() { return { now: this.value, timer: null, since: 0 }; },
  watch: { value(v) { if (this.timer === null && Date.now() - this.since > 600) this.now = v; }, high() { this.now = this.value; } },
  computed: {
    told() { return this.names ? this.names[Math.round(this.now - this.low)] : String(+(+this.now).toFixed(3)); },
  },
  methods: {
    slide(value) {
      this.now = Number(value);
      this.since = Date.now();
      if (this.timer === null) this.timer = setTimeout(() => { this.timer = null; this.$emit("slide", this.now); }, 100);
    },
  },
};
