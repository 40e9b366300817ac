/** A page without a build: it starts a run, shows its events as they arrive, and answers the questions of the run. */
export const page = `<!doctype html>
<meta charset="utf-8" />
<title>A kernai agent</title>
<style>
  body { font: 16px system-ui; max-width: 40rem; margin: 2rem auto }
</style>
<form><input size="40" value="Write to Oslo." /> <button>Ask</button></form>
<main></main>
<script type="module">
  const main = document.querySelector("main")
  const line = (text) => main.appendChild(Object.assign(document.createElement("p"), { textContent: text }))
  const post = (path, body) =>
    fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })

  const ask = (runId, question) => {
    const place = line(question.name + " " + JSON.stringify(question.input) + ": " + question.reason + " ")
    for (const [label, approved] of [["Approve", true], ["Deny", false]]) {
      const button = place.appendChild(Object.assign(document.createElement("button"), { textContent: label }))
      button.onclick = async () => {
        place.textContent = label
        await post("/runs/" + runId + "/answers", { answers: [{ callId: question.callId, approved }] })
      }
    }
  }

  const follow = (runId) => {
    location.hash = runId
    main.replaceChildren()
    // The browser reconnects by itself, and continues after the last event.
    const events = new EventSource("/runs/" + runId + "/events?until=end")
    let answer
    events.onmessage = async ({ data }) => {
      const event = JSON.parse(data)
      if (event.type === "block_start") answer = event.blockType === "final" ? line("") : undefined
      if (event.type === "block_content" && answer) answer.textContent += event.text
      if (event.type === "model_completed" && event.outcome.type === "final") {
        answer ??= line("")
        answer.textContent = event.outcome.text
      }
      if (event.type === "paused") {
        const questions = await (await fetch("/runs/" + runId + "/questions")).json()
        for (const question of questions) ask(runId, question)
      }
      if (event.type === "run_completed" || event.type === "run_cancelled") events.close()
    }
  }

  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault()
    const response = await post("/runs", { input: document.querySelector("input").value })
    follow((await response.json()).runId)
  }
  if (location.hash) follow(location.hash.slice(1))
</script>
`
