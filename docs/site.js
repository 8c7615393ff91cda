// What readers with a keyboard or a screen reader need and the theme's script takes away: names that differ for the bars
// that it puts at blocks of code, and a way into code and tables that scroll.
const mend = () => {
  const blocks = [...document.querySelectorAll("pre")]
  for (const bar of document.querySelectorAll(".md-code__nav:not([aria-label])"))
    bar.setAttribute("aria-label", `Code ${blocks.indexOf(bar.closest("pre")) + 1}`)
  for (const wide of document.querySelectorAll(":is(pre > code, .md-typeset__scrollwrap, .formula):not([tabindex])"))
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0
}
const changes = { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] }
new MutationObserver(mend).observe(document.documentElement, changes)

// The table of environments: a filter by words and by mode, and sorting by a press on a head.
const numberOf = (text) => {
  const found = text.replace("−", "-").match(/^-?[\d.]+(e[+-]?\d+)?/)
  return found ? parseFloat(found[0]) : NaN
}
const sortBy = (table, column, head) => {
  const down = head.getAttribute("aria-sort") === "ascending"
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort")
  head.setAttribute("aria-sort", down ? "descending" : "ascending")
  const key = (row) => row.cells[column].textContent.trim()
  const rows = [...table.tBodies[0].rows].sort((one, other) => {
    const [a, b] = [numberOf(key(one)), numberOf(key(other))]
    const order = isNaN(a) || isNaN(b) ? key(one).localeCompare(key(other)) : a - b
    return down ? -order : order
  })
  table.tBodies[0].append(...rows)
}
const offerFilter = (box) => {
  const table = box.querySelector("table")
  if (!table || box.querySelector(".environment-filter")) return
  const rows = [...table.tBodies[0].rows]
  const modes = [...new Set(rows.map((row) => row.cells[1].textContent.trim()))]
  const form = document.createElement("div")
  form.className = "environment-filter"
  form.innerHTML = `<label>Words<input type="search" placeholder="noisy chain"></label>
    <label>Mode<select><option value="">all</option>${modes.map((mode) => `<option>${mode}</option>`).join("")}</select></label>
    <output></output>`
  const [words, mode, count] = [form.querySelector("input"), form.querySelector("select"), form.querySelector("output")]
  const filter = () => {
    const asked = words.value.toLowerCase().split(/\s+/)
    for (const row of rows) {
      const text = row.textContent.toLowerCase()
      const fits = (!mode.value || row.cells[1].textContent.trim() === mode.value) && asked.every((word) => text.includes(word))
      row.hidden = !fits
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`
  }
  form.addEventListener("input", filter)
  box.prepend(form)
  filter()
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button")
    button.type = "button"
    button.append(...head.childNodes)
    head.append(button)
    button.addEventListener("click", () => sortBy(table, column, head))
  })
}
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".environment-table").forEach(offerFilter))
