// One of several, as browsers offer it: works with keyboard and phone.
export default {
  template: `
    <label class="field"><span>{{ label }}</span>
      <select :value="value" :disabled="disabled" @change="$emit('pick', $event.target.value)">
        <option v-for="o in options" :key="o.value" :value="o.value" :selected="o.value === value">{{ o.label }}</option>
      </select>
    </label>`,
  props: { label: String, options: Array, value: String, disabled: Boolean },
  emits: ["pick"],
};
