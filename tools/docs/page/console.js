// In the worker of a sample: what it prints goes to the page.
const shown = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)))
for (const level of ["log", "info", "warn", "error", "debug"]) {
  console[level] = (...values) => postMessage({ line: values.map(shown).join(" ") })
}
addEventListener("unhandledrejection", ({ reason }) => postMessage({ failed: String(reason) }))
