/** What people do in the browser: answer questions and chat. */
import type { Page } from "playwright-core"
import { completed, goTo, open, openRun, picture, shown, verdict, type Visit } from "./studioBrowser.ts"
import { disguised, hostile } from "./studioHostile.ts"
import { attempt, type Line } from "./support.ts"

const rowsOf = (page: Page) => page.getByRole("list", { name: "Calls that wait" }).getByRole("listitem")

const questions = (visit: Visit) =>
  attempt(
    "a call is approved, denied and changed in a form from the list; a second page that answers late changes nothing",
    async () => {
      const { counts, stateOf, submit } = visit.site
      const { page, wrong } = await open(visit)
      const other = await open(visit)
      const runs: Array<string> = []
      for (const question of ["Please pay 1", "Please pay 2", "Please pay 3"]) runs.push(await submit(question))
      const cardOf = (one: Page) => one.getByRole("group", { name: "pay waits for you" })
      for (const one of [page, other.page]) {
        await goTo(one, "#/questions")
        await rowsOf(one).nth(2).waitFor()
      }
      // A page in the background hears nothing new.
      await other.page.evaluate(`(() => {
        Object.defineProperty(document, "visibilityState", { value: "hidden" })
        document.dispatchEvent(new Event("visibilitychange"))
      })()`)
      const [rows, card] = [rowsOf(page), cardOf(page)]
      await card.getByRole("button", { name: "Approve" }).click()
      await rows.nth(2).waitFor({ state: "detached" })
      await card.getByRole("button", { name: "Edit" }).click()
      await page.getByLabel("to *").fill("Max")
      await page.getByLabel("amount *").fill("1")
      await shown(page, "to: Eva → Max")
      await picture(page, "questions")
      await card.getByRole("button", { name: "Approve the changed input" }).click()
      await rows.nth(1).waitFor({ state: "detached" })
      await card.getByLabel("Reason for denying").fill("too much")
      await card.getByRole("button", { name: "Deny" }).click()
      await shown(page, "Nothing waits for you")
      await cardOf(other.page).getByRole("button", { name: "Approve" }).click()
      await shown(other.page, "answered elsewhere already")
      const inputs: Array<unknown> = []
      for (const runId of runs) {
        await openRun(page, runId)
        await completed(page)
        inputs.push((await stateOf(runId))?.turns[0]?.completed[0]?.input)
      }
      await Promise.all([page.close(), other.page.close()])
      const isChanged = JSON.stringify(inputs).includes(`"Max"`)
      return verdict(counts.paid === 2 && isChanged, `paid ${counts.paid} of 3`, wrong)
    }
  )

const dot = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

const chat = (visit: Visit) =>
  attempt(
    "a chat streams, shows calls and the runs below, asks before a payment, takes an upload and is stopped",
    async () => {
      const { page, wrong } = await open(visit)
      await page.getByRole("link", { name: "Chat" }).click()
      const say = async (text: string) => {
        await page.getByLabel("Message").fill(text)
        await page.getByRole("button", { name: "send" }).click()
      }
      await page.getByLabel("Message").waitFor()
      await page.setInputFiles("input[type=file]", { name: "dot.png", mimeType: "image/png", buffer: dot })
      await say("What is a fiber?")
      await page.locator(".bubble img").waitFor()
      await page.locator(".answer", { hasText: "light thread" }).waitFor()
      await page.getByRole("button", { name: "send" }).waitFor()
      const paid = visit.site.counts.paid
      await say("Please pay Eva")
      await page.getByRole("button", { name: "approve" }).click()
      await page.locator(".answer", { hasText: "That is all." }).waitFor()
      // The text before a call stays when the call is there.
      await page.locator(".answer", { hasText: "I pay him." }).waitFor()
      await page.getByRole("button", { name: "send" }).waitFor()
      await say("Please delegate: book")
      await page.locator(".below", { hasText: "helper" }).waitFor()
      await page.locator(".exchange").nth(2).locator(".answer", { hasText: "That is all." }).waitFor()
      await page.locator(".below > summary").click()
      await page.locator(".below", { hasText: "booked 7C" }).waitFor()
      await picture(page, "chat")
      await page.getByRole("button", { name: "send" }).waitFor()
      const { stopped } = visit.site.counts
      await say("Please wait")
      await page.getByText("wait runs").waitFor()
      await page.getByRole("button", { name: "stop" }).click()
      await shown(page, "stopped")
      await page.reload()
      await page.locator(".exchange").nth(3).waitFor()
      await say("What is a fiber, again?")
      await page.locator(".exchange").nth(4).locator(".answer").waitFor()
      await page.close()
      const { counts } = visit.site
      return verdict(
        counts.stopped === stopped + 1 && counts.paid === paid + 1,
        "5 questions, 1 paid, 1 delegated, 1 stopped",
        wrong
      )
    }
  )

const settings = (visit: Visit) =>
  attempt("the chat has settings for agent, model and dialect, and the run has them", async () => {
    const { page, wrong } = await open(visit)
    await page.getByRole("link", { name: "Chat" }).click()
    await page.getByLabel("model").selectOption("other")
    await page.getByLabel("dialect").selectOption("tools")
    await page.getByLabel("Message").fill("What is a fiber?")
    await page.getByRole("button", { name: "send" }).click()
    await page.locator(".exchange").waitFor()
    const href = (await page.getByRole("link", { name: "open the run" }).getAttribute("href")) ?? ""
    await page.locator(".answer, .exchange .error").first().waitFor()
    const state = await visit.site.stateOf(decodeURIComponent(href.replace("#/runs/", "")))
    const turn = state?.turns[0] ?? state?.currentTurn
    await page.close()
    return verdict(
      state?.agent === "clerk@other+tools" && turn?.dialect === "tools" && turn.model === "scripted/other",
      `${state?.agent}: ${turn?.model}, ${turn?.dialect}`,
      wrong
    )
  })

const uiPage = (visit: Visit) =>
  attempt(
    "the page of a result reaches nothing around it, no other window speaks for it, and its call is asked",
    async () => {
      const { page, wrong } = await open(visit)
      await page.getByRole("link", { name: "Chat" }).click()
      await page.getByLabel("Message").fill("Show the map")
      await page.getByRole("button", { name: "send" }).click()
      const frame = page.frameLocator("iframe.page")
      const said = frame.locator("#said")
      await said.getByText("reached").waitFor()
      const reached = await said.textContent()
      const card = page.getByRole("group", { name: "The page asks" })
      await card.waitFor()
      await page.evaluate(`postMessage({ jsonrpc: "2.0", id: 9, method: "tools/call", params: { name: "pay" } }, "*")`)
      await page.waitForTimeout(100)
      const cards = await card.count()
      await picture(page, "page")
      const paid = visit.site.counts.paid
      await page.getByRole("button", { name: "send it to the agent" }).click()
      await page.locator(".exchange").nth(1).getByRole("group", { name: "pay waits for you" }).waitFor()
      const isUnpaid = visit.site.counts.paid === paid
      await page.getByRole("button", { name: "deny" }).click()
      await page.close()
      // What the browser says of the attempts of the page is the proof that it held them.
      const refused = wrong.filter((one) => !/connect-src|Fetch API cannot load|sandbox/i.test(one))
      return verdict(
        reached === "reached: nothing" && cards === 1 && isUnpaid,
        `${reached}; ${cards} question, nothing paid before an answer`,
        refused
      )
    }
  )

const safety = (visit: Visit) =>
  attempt(
    "hostile text in a question, an input, an error and an answer stays text: no script, no request, no violation",
    async () => {
      const { page, wrong } = await open(visit)
      const runId = await visit.site.submit(`hostile ${hostile}`)
      await openRun(page, runId)
      await completed(page)
      for (const name of ["Blocks", "Events", "State", "Conversation", "Usage", "Explain"]) {
        await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click()
        await page.waitForTimeout(50)
      }
      await shown(page, /window.hacked=1/)
      await page.keyboard.press("f")
      await page.getByRole("dialog", { name: "Fork" }).waitFor()
      await page.keyboard.press("Escape")
      await page.getByRole("link", { name: "Runs" }).click()
      await page.locator(".row", { hasText: "window.hacked" }).first().waitFor()
      await page.getByRole("link", { name: "Chat" }).click()
      await page.getByLabel("Message").fill(`hostile ${hostile}`)
      await page.getByRole("button", { name: "send" }).click()
      await page.locator(".answer", { hasText: "window.hacked" }).first().waitFor()
      const hacked = await page.evaluate("window.hacked")
      await page.close()
      return verdict(hacked === undefined, "nothing ran", wrong)
    }
  )

const disguise = (visit: Visit) =>
  attempt("an approval shows reversed, invisible and imitating characters and gaps, before and after it", async () => {
    const { page, wrong } = await open(visit)
    const runId = await visit.site.submit("Please disguise a payment")
    await goTo(page, "#/questions")
    await rowsOf(page).filter({ hasText: "disguise" }).getByRole("button").click()
    const card = page.locator("article", { hasText: "Mallory" })
    await card.waitFor()
    const text = (await card.textContent()) ?? ""
    const shows = [
      "\\u{202e}evil@liame\\u{202c}",
      "p\u0430‹U+0430›y\\u{200b}pal",
      "‹300 characters of white space›Mallory"
    ]
    const missing = shows.filter((one) => !text.includes(one))
    await picture(page, "disguise")
    await card.getByRole("button", { name: "Approve" }).click()
    await openRun(page, runId)
    await completed(page)
    const hidden: Array<string> = []
    for (const name of ["Blocks", "Events", "State", "Conversation"]) {
      await page.getByRole("tab", { name: new RegExp(`^${name}`) }).click()
      await page.waitForTimeout(50)
      if (/[\u202e\u200b]/.test((await page.locator("main").textContent()) ?? "")) hidden.push(name)
    }
    const paid = (await visit.site.stateOf(runId))?.turns[0]?.completed[0]?.input
    await page.close()
    const isWhole = JSON.stringify(paid) === JSON.stringify({ to: disguised, amount: 12 })
    return verdict(
      missing.length === 0 && hidden.length === 0 && isWhole,
      `not shown: ${missing.length}, tabs that hide: ${hidden.join(", ") || "none"}, paid as shown: ${isWhole}`,
      wrong
    )
  })

/** The lines about people. The questions need a studio of their own. */
export const peopleLines = async (visit: Visit): Promise<ReadonlyArray<Line>> => [
  await chat(visit),
  await settings(visit),
  await uiPage(visit),
  await safety(visit),
  await disguise(visit)
]
export { questions }
