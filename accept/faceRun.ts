/** A run as people read it: messages, Markdown, calls, and the tree over all agents. */
import type { Browser } from "playwright-core"
import { enter, openNew } from "./faceRuns.ts"
import { idsOf, type Office } from "./gallerySite.ts"
import { verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const messages = (browser: Browser, office: Office) =>
  attempt(
    "a conversation is read as messages, with Markdown, code in colors, links with their host, and calls as cards",
    async () => {
      const page = await enter(browser, office)
      const { guide, invoice } = await idsOf(office)
      await page.evaluate(`location.hash = "#/runs/${guide}"`)
      const answer = page.locator(".said-by.assistant")
      await answer.getByRole("heading", { name: "How a run is stored" }).waitFor()
      const cells = await answer.locator("td code").allTextContents()
      const words = await answer.locator(".code-word").allTextContents()
      const link = await answer.getByRole("link").textContent()
      await page.evaluate(`location.hash = "#/runs/${invoice}"`)
      await page.getByRole("group", { name: "call extractor" }).waitFor()
      const waits = await page.getByRole("group", { name: "call pay" }).textContent()
      await page.getByRole("button", { name: "As sent" }).click()
      await page.locator(".message", { hasText: '<block type="command" name="extractor">' }).first().waitFor()
      await page.close()
      const pass = cells.length === 2 && words.includes("const") && link === "guide example.com"
      return verdict(pass && waits?.includes("waits for an approval") === true, `${cells.join(", ")}; ${link}`)
    }
  )

const tree = (browser: Browser, office: Office) =>
  attempt("one tree has the turns and calls of all agents with their times, and opens the run of a line", async () => {
    const page = await enter(browser, office)
    const { invoice } = await idsOf(office)
    await page.evaluate(`location.hash = "#/runs/${invoice}"`)
    const found = page.locator(".node", { hasText: "find_order" })
    await found.waitFor()
    const bars = await page.locator(".lane .bar").count()
    const names = await page.locator(".node .name").allTextContents()
    await found.click()
    await page.locator(".heading", { hasText: "Find the order" }).waitFor()
    const still = await page.locator(".node", { hasText: "extractor" }).count()
    await page.close()
    return verdict(names.length >= 10 && bars >= names.length && still > 0, `${names.length} lines, ${bars} times`)
  })

const compare = (browser: Browser, office: Office) =>
  attempt("a fork is compared with its run: what differs is marked, what is the same is folded", async () => {
    const { id, page } = await openNew(browser, office, "Are seats free for two?")
    await page.evaluate(`location.hash = "#/runs/${id}?rev=1"`)
    await page.getByRole("button", { name: "Fork from here" }).click()
    await page.getByLabel("the question").fill("Are seats free for three?")
    await page.getByRole("button", { name: "Fork", exact: true }).click()
    await page.locator(".heading.completed", { hasText: "for three" }).waitFor()
    await page.getByRole("link", { name: "compare" }).click()
    await page.locator(".compare mark").first().waitFor()
    const marks = await page.locator(".compare mark").allTextContents()
    const same = await page.locator(".compare details:not([open])", { hasText: "the same" }).count()
    await page.close()
    return verdict(marks.join() === "two,three" && same >= 2, `${marks.join(" and ")}, ${same} sections the same`)
  })

const play = (browser: Browser, office: Office) =>
  attempt("a turn is played twice with other instructions, beside the answer before", async () => {
    const { page } = await openNew(browser, office, "What is stored of a played run?")
    await page.getByRole("link", { name: "Playground" }).click()
    await page.getByLabel("instructions of this turn").fill("You read invoices.")
    await page.getByLabel("times").selectOption("2")
    await page.getByRole("button", { name: "Play" }).click()
    const played = page.getByRole("article", { name: "Played" }).filter({ hasText: "Supplier Nordlys AS" })
    await played.nth(1).waitFor()
    await page.getByRole("button", { name: "Differences" }).click()
    const marked = await played.first().locator("mark").count()
    await played.first().getByRole("link", { name: "Compare" }).click()
    const instructions = page.locator(".compare details", { hasText: "Instructions" })
    await instructions.locator("mark", { hasText: /^invoices$/ }).waitFor()
    await page.close()
    return verdict(marked > 0, `2 answers, ${marked} marked parts in the first`)
  })

const playResult = (browser: Browser, office: Office) =>
  attempt("a turn is played with another model, after another result and an edited reply", async () => {
    const { page } = await openNew(browser, office, "Are seats free for a played run?")
    await page.getByRole("link", { name: "Playground" }).click()
    await page.getByLabel("The result of book").fill("12A is booked")
    await page.getByLabel("Message 2, assistant").fill("I book it.")
    await page.getByLabel("Model").selectOption("anthropic/claude-haiku-5-5")
    await page.getByRole("button", { name: "Play" }).click()
    const played = page.getByRole("article", { name: "Played" })
    await played.locator("strong", { hasText: "booked" }).waitFor()
    const facts = await played.locator(".quiet").first().textContent()
    await played.getByRole("link", { name: "Open" }).click()
    const result = await page.getByRole("group", { name: "call book" }).textContent()
    await page.getByRole("button", { name: "As sent" }).click()
    await page.locator(".message", { hasText: "I book it." }).waitFor()
    await page.goBack()
    await played.locator("strong", { hasText: "booked" }).waitFor()
    await page.close()
    return verdict(facts?.includes("haiku") === true && result?.includes("12A is booked") === true, facts ?? "")
  })

export const runLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => [
  await messages(browser, office),
  await tree(browser, office),
  await compare(browser, office),
  await play(browser, office),
  await playResult(browser, office)
]
