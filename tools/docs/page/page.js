// Samples that run where they are read, each in a worker of its own, which ends with it or after half a minute; and
// commands for each runtime as tabs, of which the reader chooses one for all pages.
const base = document.documentElement.dataset.base

const run = (sample, output, button) => {
  output.textContent = ""
  output.hidden = false
  button.disabled = true
  const worker = new Worker(`${base}assets/samples/${sample}.js`, { type: "module" })
  const print = (line) => output.append(`${line}\n`)
  const end = (line) => {
    clearTimeout(timer)
    worker.terminate()
    button.disabled = false
    if (line !== undefined) print(line)
    output.dataset.ended = ""
  }
  const timer = setTimeout(() => end("stopped after half a minute"), 30_000)
  worker.addEventListener("message", ({ data }) => {
    if (data.line !== undefined) print(data.line)
    else end(data.failed)
  })
  worker.addEventListener("error", ({ message }) => end(message || "the sample could not be loaded"))
}

for (const pre of document.querySelectorAll("pre[data-sample]")) {
  const button = document.createElement("button")
  button.type = "button"
  button.className = "run"
  button.textContent = "Run"
  const output = document.createElement("output")
  output.className = "ran"
  output.hidden = true
  button.addEventListener("click", () => run(pre.dataset.sample, output, button))
  pre.append(button)
  pre.after(output)
}

const kept = "kernai-runtime"

const choose = (runtime) => {
  for (const tab of document.querySelectorAll(".tabs [role=tab]")) {
    const isChosen = tab.textContent === runtime
    tab.ariaSelected = String(isChosen)
    tab.tabIndex = isChosen ? 0 : -1
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen
  }
}

/** The tab that an arrow key leads to. */
const beside = (tabs, tab, key) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key]
  return step === undefined ? undefined : tabs.at((tabs.indexOf(tab) + step) % tabs.length)
}

for (const [index, group] of document.querySelectorAll(".tabs").entries()) {
  const list = document.createElement("div")
  list.role = "tablist"
  list.ariaLabel = "Runtime"
  for (const panel of group.children) {
    const tab = document.createElement("button")
    tab.type = "button"
    tab.role = "tab"
    tab.textContent = panel.dataset.runtime
    panel.id = `tabs-${index}-${panel.dataset.runtime}`
    panel.role = "tabpanel"
    panel.ariaLabel = panel.dataset.runtime
    tab.setAttribute("aria-controls", panel.id)
    list.append(tab)
  }
  const tabs = [...list.children]
  const select = (tab) => {
    localStorage.setItem(kept, tab.textContent)
    choose(tab.textContent)
    tab.focus()
  }
  for (const tab of tabs) tab.addEventListener("click", () => select(tab))
  list.addEventListener("keydown", ({ key, target }) => {
    const next = beside(tabs, target, key)
    if (next !== undefined) select(next)
  })
  group.prepend(list)
}
const stored = localStorage.getItem(kept)
choose(["Node", "Bun", "Deno"].includes(stored) ? stored : "Node")
