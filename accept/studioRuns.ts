/** Runs in the browser: live, failed, stopped, forked, and at every revision. */
import { BlockParser, Message, RunState } from "../src/index.ts"
import { seenParts } from "../src/kit/seenText.ts"
import { atRest, completed, openRun, open, picture, place, shown, until, verdict, type Visit } from "./studioBrowser.ts"
import { corpus } from "./studioSite.ts"
import { attempt, type Line } from "./support.ts"

/** The rows of the events tab, as `revision type`. */
const rowsOf = `[...document.querySelectorAll(".body .virtual")].map((row) => row.innerText.split("\\n").slice(0, 2).join(" "))`

const journalRows = (records: ReadonlyArray<RunState.RunRecord>) =>
  records.flatMap(({ events, op, revision }) =>
    events.length === 0 ? [`${revision} ${op}`] : events.map(({ type }) => `${revision} ${type}`)
  )

/** Reads events of a run until one with a text, and returns the ids that came. */
const readEvents = `async (runId, lastId, until) => {
  const path = location.pathname.replace(/\\/$/, "") + "/api/runs/" + runId + "/events?until=end"
  const response = await fetch(path, { headers: lastId === "" ? {} : { "last-event-id": lastId } })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  for (;;) {
    const { done, value = "" } = await reader.read()
    text += value
    const end = text.indexOf(until)
    if (end !== -1) text = text.slice(0, text.indexOf("\\n\\n", end))
    if (done || end !== -1) break
  }
  await reader.cancel()
  return [...text.matchAll(/^id: ?(.*)$/gm)].map(([, id]) => id)
}`

const live = (visit: Visit) =>
  attempt(
    "three turns stream in, in the order of the journal; a reload and a new connection lose and repeat nothing",
    async () => {
      const { page, wrong } = await open(visit)
      const runId = await visit.site.submit("Look slowly, please")
      // High enough for all rows of the run.
      await page.setViewportSize({ width: 1280, height: 1_800 })
      await openRun(page, runId, "tab=Events")
      await page.locator(".said", { hasText: "One word" }).waitFor()
      const cut: ReadonlyArray<string> = await page.evaluate(
        `(${readEvents})(${JSON.stringify(runId)}, "", "tool_call_completed")`
      )
      await page.reload()
      await completed(page)
      const rest: ReadonlyArray<string> = await page.evaluate(
        `(${readEvents})(${JSON.stringify(runId)}, ${JSON.stringify(cut.at(-1))}, "run_completed")`
      )
      const revisions = [...cut, ...rest].filter((id) => /^\d+$/.test(id)).map(Number)
      const records = await visit.site.recordsOf(runId)
      const drawn = await page.evaluate(rowsOf)
      const events = records.filter((record) => record.events.length > 0)
      const isOnce = JSON.stringify([...new Set(revisions)]) === JSON.stringify(events.map(({ revision }) => revision))
      const isSame = JSON.stringify(drawn) === JSON.stringify(journalRows(records))
      const turns = RunState.fold(records)?.turns.length
      await page.close()
      return verdict(
        isOnce && isSame && turns === 3,
        `${turns} turns, ${records.length} revisions, cut at ${cut.at(-1)}`,
        wrong
      )
    }
  )

const red = `(() => {
  const { height, width } = document.querySelector(".film canvas")
  const { data } = document.querySelector(".film canvas").getContext("2d").getImageData(0, 0, width, height)
  let found = 0
  for (let at = 0; at < data.length; at += 4) if (data[at] > 150 && data[at + 1] < 90 && data[at + 2] < 90) found++
  return found
})()`

const failedRun = (visit: Visit) =>
  attempt(
    "a failed skill shows in the list, the tree, the film strip and the banner; 'go to rev' selects it",
    async () => {
      const { page, wrong } = await open(visit)
      const runId = await visit.site.submit("Is the seat free?")
      await openRun(page, runId)
      await shown(page, "That is all.")
      await page.locator(".node.error", { hasText: "book" }).waitFor()
      const pixels = Number(await page.evaluate(red))
      await page.keyboard.press("e")
      const at = await place(page)
      await page.locator(".banner", { hasText: "skill failed" }).waitFor()
      await page.locator(".film input").focus()
      await page.keyboard.press("End")
      await page.keyboard.press("e")
      // Three rows of 32 pixels: the list has the room that its rows need.
      const room = await page.locator(".tree .space").boundingBox()
      await picture(page, "run")
      for (const name of ["Blocks", "Events", "State", "Media", "Usage", "Explain"]) {
        await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click()
        if (name === "Explain") await shown(page, "skill failed")
        await picture(page, name.toLowerCase())
      }
      await page.getByRole("link", { name: "Runs" }).click()
      await page.locator(".row", { hasText: "1 failed" }).first().waitFor()
      await page.close()
      const failed = (await visit.site.recordsOf(runId)).find(
        ({ events: [event] }) => event?.type === "tool_call_completed"
      )
      return verdict(
        pixels > 0 && room?.height === 96 && at.startsWith(`rev ${failed?.revision} `),
        `${at}, ${pixels} red pixels`,
        wrong
      )
    }
  )

const stop = (visit: Visit) =>
  attempt("closing the page stops nothing; 'stop' ends the run, its child and the process of its skill", async () => {
    const { counts, stateOf, submit, below } = visit.site
    const first = await open(visit)
    const runId = await submit("Please delegate: hang")
    await openRun(first.page, runId)
    await first.page.locator(".node", { hasText: "helper" }).waitFor()
    await until(() => counts.processes.size > 0)
    await first.page.close()
    const { page, wrong } = await open(visit)
    await openRun(page, runId)
    const before = counts.processes.size
    await page.getByRole("button", { name: "Cancel" }).click()
    await page.locator(".heading.cancelled").waitFor()
    await until(() => counts.processes.size === 0)
    const states = await Promise.all([runId, ...(await below(runId))].map(stateOf))
    const statuses = states.map((state) => state?.status.type)
    await page.close()
    const isOver = statuses.length === 2 && statuses.every((status) => status === "cancelled")
    return verdict(
      before === 1 && isOver && counts.processes.size === 0,
      `${statuses.join(", ")}; ${counts.processes.size} processes`,
      wrong
    )
  })

/** The fields of the state that the page draws at a revision, opened and read. */
const drawnState = `async (rev) => {
  const slider = document.querySelector(".film input")
  slider.value = String(rev)
  slider.dispatchEvent(new Event("input", { bubbles: true }))
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  await frame()
  for (const details of document.querySelectorAll("[aria-label=State] > details")) details.open = true
  await frame()
  await frame()
  const fields = {}
  for (const details of document.querySelectorAll("[aria-label=State] > details")) {
    const name = details.querySelector("summary").firstChild.textContent.trim()
    fields[name] = details.querySelector("pre")?.textContent ?? ""
  }
  return { at: document.querySelector(".film output").textContent, fields }
}`

/** The text of a field as the page shows it: long lists by their ends, long texts by their beginnings. */
const textOf = (value: unknown): string => {
  const shown = Array.isArray(value) && value.length > 20 ? value.slice(-20) : value
  const plain: unknown = shown === undefined ? undefined : JSON.parse(JSON.stringify(shown))
  return (typeof plain === "string" ? plain : (JSON.stringify(plain, null, 2) ?? "")).slice(0, 6_000)
}

const questions = [
  "What is a fiber?",
  "Is the seat free?",
  "Please wait and pay",
  "Please delegate: book",
  "corpus 3",
  "corpus 20",
  "corpus 33",
  "Look slowly, again"
]

const everyRevision = (visit: Visit) =>
  attempt("at every revision of 8 runs, the slider draws the state that the kernel folds", async () => {
    const { page, wrong } = await open(visit)
    const runs = await Promise.all(questions.map((question) => visit.site.submit(question)))
    let compared = 0
    let differences = 0
    for (const runId of runs) {
      await openRun(page, runId, "tab=State")
      await atRest(page)
      const records = await visit.site.recordsOf(runId)
      for (let at = 1; at <= records.length; at++) {
        const state = RunState.fold(records.slice(0, at))
        const { fields }: { readonly fields: Readonly<Record<string, string>> } = await page.evaluate(
          `(${drawnState})(${at})`
        )
        for (const [name, value] of Object.entries({ ...state })) {
          if (textOf(value) !== (fields[name] ?? "")) {
            differences++
            if (differences === 1) wrong.push(`${runId} at ${at}, ${name}: ${(fields[name] ?? "").slice(0, 80)}`)
          }
        }
        compared++
      }
    }
    await page.close()
    return verdict(
      compared > 60 && differences === 0,
      `${compared} revisions of ${runs.length} runs, ${differences} fields differ`,
      wrong
    )
  })

const forkOfChild = (visit: Visit) =>
  attempt("a fork from inside a child run says what runs again, and that runs; the original is untouched", async () => {
    const { below, counts, recordsOf, stateOf, submit } = visit.site
    const { page, wrong } = await open(visit)
    const rootId = await submit("Please delegate: book")
    await openRun(page, rootId)
    await completed(page)
    const [childId = ""] = await below(rootId)
    const before = JSON.stringify(await recordsOf(childId))
    const records = await recordsOf(childId)
    const asked = records.find(({ events: [event] }) => event?.type === "tool_calls_started")
    await openRun(page, childId, `rev=${asked?.revision}`)
    await page.keyboard.press("f")
    const again = await page.locator(".again").textContent()
    await picture(page, "fork")
    const booked = counts.booked
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await shown(page, "fork of")
    await completed(page)
    const forkId = decodeURIComponent(/runs\/([^?]+)/.exec(page.url())?.[1] ?? "")
    const state = await stateOf(forkId)
    const ran = state?.turns.flatMap((turn) => turn.completed.map(({ name }) => name))
    await page.close()
    const isSame = JSON.stringify(await recordsOf(childId)) === before
    return verdict(
      again === "book" && counts.booked === booked + 1 && JSON.stringify(ran) === `["book"]` && isSame,
      `said '${again}', ran ${ran?.join(", ")}; original ${isSame ? "untouched" : "changed"}`,
      wrong
    )
  })

const forkEdited = (visit: Visit) =>
  attempt("a fork takes another question and another result of a call", async () => {
    const { page, wrong } = await open(visit)
    const runId = await visit.site.submit("Is the seat free?")
    await openRun(page, runId)
    await completed(page)
    const records = await visit.site.recordsOf(runId)
    const done = records.find(({ events: [event] }) => event?.type === "tool_call_completed")
    await openRun(page, runId, `rev=${done?.revision}`)
    await page.keyboard.press("f")
    await page.getByLabel("the question").fill("Is seat 12A free today?")
    await page.getByLabel("the result of book").fill("12A is yours")
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await shown(page, "fork of")
    await completed(page)
    const forkId = decodeURIComponent(/runs\/([^?]+)/.exec(page.url())?.[1] ?? "")
    const state = await visit.site.stateOf(forkId)
    const result = JSON.stringify(state?.turns[0]?.completed[0])
    const question = state?.input.map((message) => Message.text(message)).join("")
    await page.close()
    return verdict(
      question === "Is seat 12A free today?" && result.includes("12A is yours"),
      `asked '${question}'`,
      wrong
    )
  })

/** The text with its hidden characters as the page marks them. */
const marked = (text: string) =>
  seenParts(text)
    .map((part) => (typeof part === "string" ? part : part.text))
    .join("")

const blocks = (visit: Visit) =>
  attempt("the blocks of 40 replies of the corpus are those of the parser, and their text is the reply", async () => {
    const { page, wrong } = await open(visit)
    const runs = await Promise.all(corpus.map((_, at) => visit.site.submit(`corpus ${at}`)))
    let found = 0
    for (const [at, runId] of runs.entries()) {
      const reply = corpus[at] ?? ""
      await openRun(page, runId)
      await atRest(page)
      const records = await visit.site.recordsOf(runId)
      const replied = records.find(({ events: [event] }) => event?.type === "model_completed")
      await openRun(page, runId, `rev=${replied?.revision}&tab=Blocks`)
      const raw = page.locator("pre.raw")
      await raw.waitFor()
      const { blocks, unclosed } = BlockParser.parse(reply)
      const expected = [...blocks, ...(unclosed === undefined ? [] : [unclosed])].map(({ content }) => marked(content))
      const drawn = await page.locator("[aria-label=Blocks] div.span > pre").allTextContents()
      const text = await raw.textContent()
      if (text === marked(reply) && JSON.stringify(drawn) === JSON.stringify(expected)) found += drawn.length
      else wrong.push(`corpus ${at}: ${JSON.stringify(text?.slice(0, 60))}`)
    }
    await page.close()
    return verdict(found > 10, `${found} blocks in ${runs.length} replies`, wrong)
  })

const conversation = (visit: Visit) =>
  attempt("the conversation of every turn is, byte for byte, what the provider received", async () => {
    const { page, wrong } = await open(visit)
    const before = visit.site.requests().length
    const runId = await visit.site.submit("Look slowly and well")
    await openRun(page, runId)
    await completed(page)
    const requests = visit.site.requests().slice(before)
    const prepared = (await visit.site.recordsOf(runId)).filter(
      ({ events: [event] }) => event?.type === "turn_prepared"
    )
    let bytes = 0
    for (const [turn, { revision }] of prepared.entries()) {
      await openRun(page, runId, `rev=${revision}&view=sent`)
      const drawn: ReadonlyArray<string> = await page.evaluate(
        `[document.querySelector("[aria-label^=Prompt] > details > pre")?.textContent ?? "", ...[...document.querySelectorAll(".message")].map((one) => [...one.querySelectorAll("pre")].map((pre) => pre.textContent).join(""))]`
      )
      const sent = (requests[turn]?.messages ?? []).map((message) => Message.text(message))
      bytes += sent.join("").length
      if (JSON.stringify(drawn) !== JSON.stringify(sent))
        wrong.push(
          `turn ${turn + 1} differs: ${JSON.stringify(drawn).slice(0, 200)} / ${JSON.stringify(sent).slice(0, 200)}`
        )
    }
    await page.close()
    return verdict(prepared.length === 3 && bytes > 0, `${prepared.length} prompts, ${bytes} characters`, wrong)
  })

/** The lines about runs. */
export const runLines = async (visit: Visit): Promise<ReadonlyArray<Line>> => [
  await live(visit),
  await failedRun(visit),
  await stop(visit),
  await everyRevision(visit),
  await forkOfChild(visit),
  await forkEdited(visit),
  await blocks(visit),
  await conversation(visit)
]
