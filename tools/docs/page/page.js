// Samples that run where they are read: each in a worker of its own, which ends with it or after half a minute.
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
