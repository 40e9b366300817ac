/** The list of runs: columns, order, filter, views, keys, and what is done with several runs. */
import type { Browser, Page } from "playwright-core"
import type { Office } from "./gallerySite.ts"
import { officeQuestions, submitAll } from "./gallerySite.ts"
import { newPage, verdict } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

export const enter = async (browser: Browser, office: Office): Promise<Page> => {
  const page = await newPage(browser, { width: 1440, height: 810 })
  await page.goto(office.url)
  await page.getByRole("link", { name: "Runs" }).waitFor()
  return page
}

/** Opens a new run of a question, once it is completed. */
export const openNew = async (browser: Browser, office: Office, question: string) => {
  const id = await office.submit(question)
  const page = await enter(browser, office)
  await page.evaluate(`location.hash = "#/runs/${id}"`)
  await page.locator(".heading.completed").waitFor()
  return { id, page }
}

const texts = (page: Page, column: string) => page.locator(`tbody .c-${column}`).allTextContents()

const table = (browser: Browser, office: Office) =>
  attempt("columns are chosen and kept, the order and the filter stand in the address", async () => {
    const page = await enter(browser, office)
    await page.getByText("Columns").click()
    await page.getByLabel("Caller").check()
    await page.getByLabel("Turns").uncheck()
    await page.getByRole("button", { name: "Tokens" }).click()
    const sorted = (await texts(page, "tokens")).map((text) => Number(text.replace(/\D/g, "")))
    await page.getByRole("button", { name: "Waiting" }).click()
    await page.locator(".row.completed").first().waitFor({ state: "detached" })
    const address = page.url()
    await page.reload()
    await page.locator(".row.waiting").first().waitFor()
    const kept = [
      await texts(page, "caller"),
      await page.locator("th.c-turns").count(),
      page.url() === address
    ] as const
    await page.close()
    const isSorted = sorted.every((count, at) => at === 0 || count <= (sorted[at - 1] ?? 0))
    const pass = isSorted && kept[0].every((text) => text === "acme · ada") && kept[1] === 0 && kept[2]
    return verdict(pass, `${sorted.length} runs, ${new URL(address).hash}`)
  })

const bulk = (browser: Browser, office: Office) =>
  attempt("the keyboard selects runs, which are cancelled, retried and exported at once", async () => {
    const waiting = await Promise.all([office.submit("Please pay bulk 1"), office.submit("Please pay bulk 2")])
    const page = await enter(browser, office)
    await page.goto(`${page.url().split("#")[0]}#/?q=bulk`)
    await page.locator(".row", { hasNotText: "bulk" }).first().waitFor({ state: "detached" })
    await page.locator(".row.waiting").nth(1).waitFor()
    for (const key of ["j", "x", "j", "x"]) await page.keyboard.press(key)
    const downloads: Array<string> = []
    page.on("download", (file) => downloads.push(file.suggestedFilename()))
    await page.getByRole("button", { name: "Export 2" }).click()
    await page.getByText("Exported 2 runs").waitFor()
    for (const key of ["k", "x", "j", "x"]) await page.keyboard.press(key)
    await page.getByRole("button", { name: "Cancel 2" }).click()
    await page.getByText("Cancelled 2 runs").waitFor()
    await page.locator(".row.cancelled").nth(1).waitFor()
    const heads = await Promise.all(waiting.map(office.headOf))
    await page.close()
    const statuses = heads.map((head) => head?.status.type)
    return verdict(
      downloads.length === 2 && statuses.every((status) => status === "cancelled"),
      `${downloads.length} files, ${statuses.join(", ")}`
    )
  })

const compare = (browser: Browser, office: Office) =>
  attempt("three selected runs are compared as a table, which scrolls alone on a phone", async () => {
    for (const amount of [1, 2, 3]) await office.submit(`Please pay compared ${amount}`)
    const page = await enter(browser, office)
    await page.goto(`${page.url().split("#")[0]}#/?q=compared`)
    await page.locator(".row", { hasNotText: "compared" }).first().waitFor({ state: "detached" })
    await page.locator(".row.waiting").nth(2).waitFor()
    await page.getByLabel("Select all").check()
    await page.getByRole("link", { name: "Compare 3" }).click()
    const table = page.getByRole("region", { name: "3 runs" })
    await table.locator("mark", { hasText: "3" }).waitFor()
    await page.getByLabel("Only what differs").check()
    await table.getByRole("row", { name: /^Agent/ }).waitFor({ state: "detached" })
    await page.setViewportSize({ width: 380, height: 760 })
    const isAlone: boolean = await page.evaluate(`(() => {
      const { scrollWidth, clientWidth } = document.querySelector(".compared")
      return scrollWidth > clientWidth && document.documentElement.scrollWidth <= innerWidth
    })()`)
    const titles = await table.getByRole("rowheader").allTextContents()
    await page.close()
    return verdict(isAlone && titles.includes("Question"), `differences in ${titles.join(", ")}`)
  })

const tags = (browser: Browser, office: Office) =>
  attempt("selected runs are tagged, and a tag in the list leads to its runs, in the address", async () => {
    await Promise.all([office.submit("Please pay tagged 1"), office.submit("Please pay tagged 2")])
    const page = await enter(browser, office)
    const list = page.url().split("#")[0] ?? ""
    await page.goto(`${list}#/?q=tagged`)
    await page.locator(".row", { hasNotText: "tagged" }).first().waitFor({ state: "detached" })
    await page.locator(".row.waiting").nth(1).waitFor()
    await page.getByLabel("Select all").check()
    const bar = page.getByRole("group", { name: "Selected runs" })
    await bar.getByText("Tag", { exact: true }).click()
    await page.getByLabel("New tag").fill("needs legal")
    await page.keyboard.press("Enter")
    await page.getByText("Tagged 2 runs").waitFor()
    await page.getByRole("button", { name: "needs-legal", exact: true }).first().click()
    await page.locator(".row").nth(1).waitFor()
    const found = [filterIn(page.url()), await page.locator(".row", { hasText: "tagged" }).count()]
    await page.getByLabel("Select all").check()
    await bar.getByText("Tag", { exact: true }).click()
    await page.getByRole("button", { name: "Remove needs-legal" }).click()
    await page.getByText("No run fits the filter").waitFor()
    await page.close()
    return verdict(found.join() === "tag:needs-legal,2", found.join(", "))
  })

const overview = (browser: Browser, office: Office) =>
  attempt("the overview counts runs over time, with its range in the address, and leads to the runs", async () => {
    const page = await enter(browser, office)
    const loaded: Array<string> = []
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname))
    await page.getByRole("link", { name: "Overview" }).click()
    await page.getByRole("button", { name: "7d" }).click()
    await page.locator(".chart canvas").waitFor()
    await page.getByRole("button", { name: "cost" }).click()
    await page.locator(".keys-of-chart", { hasText: "claude-sonnet-4" }).waitFor()
    const used = await page
      .getByRole("region", { name: "By model of the last reply" })
      .locator("tbody tr")
      .textContent()
    const range = new URL(page.url()).hash
    await page.locator(".figure", { hasText: "failed" }).click()
    await page.locator(".row.failed").first().waitFor()
    const failed = await page.locator(".row").count()
    await page.close()
    return verdict(
      loaded.includes("/charts.js") &&
        range === "#/overview?range=7d&chart=cost" &&
        /\$0\.\d+[\d.]+K/.test(used ?? "") &&
        failed > 0,
      `${range}, ${failed} failed runs, ${used}`
    )
  })

const filterIn = (address: string) => new URLSearchParams(new URL(address).hash.split("?")[1]).get("q")

const slot = (browser: Browser, office: Office) =>
  attempt(
    "a bar of the overview leads to the runs that started in its time, and a view of them is kept by name",
    async () => {
      const page = await enter(browser, office)
      await page.getByRole("link", { name: "Overview" }).click()
      await page.getByRole("button", { name: "24h" }).click()
      const over = page.locator(".u-over")
      await over.waitFor()
      const { height = 0, width = 0 } = (await over.boundingBox()) ?? {}
      await over.click({ position: { x: width - 3, y: height / 2 } })
      await page.locator(".row").first().waitFor()
      const shown = await page.locator(".row").count()
      await page.getByText("Views").click()
      await page.getByLabel("Name of this view").fill("The last half hour")
      await page.getByRole("button", { name: "Save" }).click()
      const address = page.url()
      await page.goto(`${address.split("#")[0]}#/?q=before:2020-01-01`)
      await page.getByText("No run fits the filter").waitFor()
      await page.reload()
      await page.getByText("Views").click()
      await page.getByRole("link", { name: "The last half hour" }).click()
      await page
        .locator(".row")
        .nth(shown - 1)
        .waitFor()
      const isBack = filterIn(page.url()) === filterIn(address)
      await page.close()
      return verdict(isBack && shown > 0, `${shown} runs, ${new URL(address).hash}`)
    }
  )

export const runsLines = async (browser: Browser, office: Office): Promise<ReadonlyArray<Line>> => {
  await submitAll(office, officeQuestions)
  return [
    await overview(browser, office),
    await slot(browser, office),
    await table(browser, office),
    await bulk(browser, office),
    await compare(browser, office),
    await tags(browser, office)
  ]
}
