/**
 * The site of the documentation in Chromium: its samples run, its search finds texts and names, its pages follow each
 * other and fit a phone.
 */
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { extname, join, normalize } from "node:path"
import type { Browser, Page } from "playwright-core"
import { launch, program } from "../bench/chromium.ts"
import { attempt, type Line, root } from "./support.ts"

const types: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png"
}

/** Serves the built site on a free port while `body` runs. */
const served = async <A>(body: (url: string) => Promise<A>): Promise<A> => {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://site").pathname))
    const file = path === "/" ? "/index.html" : path
    try {
      const content = readFileSync(join(root, "site", file))
      response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" }).end(content)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  try {
    return await body(`http://127.0.0.1:${port}/`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const htmlOf = (file: string): string => readFileSync(join(root, "site/documents", file), "utf8")

/** The document that another one links to as the next one. */
const nextOf = (file: string): string | undefined => {
  const [, next] = /<a href="([^"]+)" rel="next">/.exec(htmlOf(file)) ?? []
  return next === undefined ? undefined : decodeURIComponent(next)
}

/** The documents in the order of their links to the next one. */
const inOrder = (): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let file = nextOf("Documentation.html"); file !== undefined && !found.includes(file); file = nextOf(file)) {
    found.push(file)
  }
  return ["Documentation.html", ...found]
}

/** What a page loads late, and no sample needs. */
const late = /(?:search|hierarchy)\.js|\.png$/

/** Runs every sample of the pages that have some. */
const runSamples = async (page: Page, url: string) => {
  await page.route(late, (route) => route.abort())
  const failed: Array<string> = []
  let ran = 0
  for (const file of inOrder()) {
    if (!htmlOf(file).includes("data-sample")) continue
    await page.goto(`${url}documents/${encodeURIComponent(file)}`, { waitUntil: "domcontentloaded" })
    for (const pre of await page.locator("pre[data-sample]").all()) {
      const output = pre.locator("xpath=following-sibling::output[1]")
      await pre.getByRole("button", { name: "Run" }).click()
      await output.and(page.locator("[data-ended]")).waitFor({ timeout: 40_000 })
      const text = (await output.textContent()) ?? ""
      const isWrong = text.trim() === "" || /\b(?:Error|stopped after|could not be loaded)\b/.test(text)
      if (isWrong) failed.push(`${file}: ${text.slice(0, 120)}`)
      ran += 1
    }
  }
  await page.unrouteAll()
  return { ran, failed }
}

/** What a reader types into the search, and the page that is found: phrases of texts, and names of the reference. */
const searches: ReadonlyArray<readonly [typed: string, page: string]> = [
  ["reciprocal rank fusion", "documents/Answer_from_documents"],
  ["bubblewrap", "documents/Give_an_agent_a_folder_to_work_in"],
  ["PGPASSWORD", "documents/PostgreSQL_in_production"],
  ["TimeoutStopSec", "documents/Deploy"],
  ["Kernel.run", "functions/kernai.Kernel.run"],
  ["RunStore.layerMemory", "variables/kernai.RunStore.layerMemory"],
  ["catalogue", "variables/kernai.Model.catalogue"]
]

const search = async (page: Page, url: string) => {
  await page.goto(url)
  await page.locator("#tsd-search-trigger").click()
  const missed: Array<string> = []
  for (const [typed, found] of searches) {
    await page.locator("#tsd-search-input").fill(typed)
    const result = page.locator(`#tsd-search-results a[href*="${found}.html"]`).first()
    const isFound = await result.waitFor({ timeout: 20_000 }).then(
      () => true,
      () => false
    )
    if (!isFound) missed.push(`${typed}: no ${found}`)
  }
  return missed
}

/** The headings of a page of the reference. */
const headings = (file: string): ReadonlyArray<string> =>
  [
    ...readFileSync(join(root, "site/modules", file), "utf8").matchAll(
      /<h2 class="tsd-anchor-link" id="[^"]*">([^<]*)/g
    )
  ].map(([, heading = ""]) => heading)

/** Chooses the commands for a runtime on the landing page, and reads those on the next page. */
const chosen = async (page: Page, url: string, runtime: string) => {
  await page.goto(url)
  await page.getByRole("tab", { name: runtime }).first().click()
  await page.goto(`${url}documents/Start_here.html`)
  return page.getByRole("tabpanel", { name: runtime }).first().locator("code").innerText()
}

/** A page of each kind: the landing page, a guide, a module. */
const places = ["", "documents/Start_here.html", "modules/kernai.Kernel.html"]

/** Pages that are wider than a phone. */
const tooWide = async (browser: Browser, url: string) => {
  const page = await browser.newPage({ viewport: { width: 380, height: 800 } })
  await page.route(late, (route) => route.abort())
  const found: Array<string> = []
  for (const place of places) {
    await page.goto(`${url}${place}`)
    const width = Number(await page.evaluate("document.documentElement.scrollWidth"))
    if (width > 380) found.push(`${place || "landing page"}: ${width}`)
  }
  await page.close()
  return found
}

const axeSource = readFileSync(join(root, "node_modules/axe-core/axe.min.js"), "utf8")

const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axeSource)
  return page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + " " + nodes.length + "x " + nodes[0].target.join(" ")))`)
}

/** The pages of ours; those of the reference nest links in the headings that TypeDoc folds. */
const own = places.filter((place) => !place.startsWith("modules/"))

const reached = async (browser: Browser, url: string) => {
  const found: Array<string> = []
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await browser.newPage({ colorScheme })
    await page.route(late, (route) => route.abort())
    for (const place of own) {
      await page.goto(`${url}${place}`)
      await page.locator("h2").first().waitFor()
      found.push(...(await violations(page)).map((text) => `${colorScheme} ${place}: ${text}`))
    }
    await page.close()
  }
  return found
}

const lines = (browser: Browser, url: string): Promise<ReadonlyArray<Line>> =>
  browser.newPage().then(async (page) => [
    await attempt("every sample of the site that needs no server runs in Chromium", () =>
      runSamples(page, url).then(({ failed, ran }) => ({
        pass: failed.length === 0 && ran >= 20,
        figure: `${ran} samples; failed: ${failed.join("; ").slice(0, 300) || "none"}`
      }))
    ),
    await attempt("next leads from the first document to the last", () => {
      const [found, all] = [inOrder().length, readdirSync(join(root, "site/documents")).length]
      return { pass: found === all && all > 45, figure: `${found} of ${all} documents` }
    }),
    await attempt("the search finds phrases of texts, and names of the reference", () =>
      search(page, url).then((missed) => ({
        pass: missed.length === 0,
        figure: missed.join("; ").slice(0, 300) || `${searches.length} of ${searches.length}`
      }))
    ),
    await attempt("the reference groups modules by task, and the names of a module by what they do", () => {
      const written = readFileSync(join(root, "src/index.ts"), "utf8").matchAll(/^\/\/ -+ (.+)$/gm)
      const tasks = headings("kernai.html").map((heading) => heading.toLowerCase())
      const missing = [...written].map(([, task = ""]) => task).filter((task) => !tasks.includes(task))
      const kinds = headings("kernai.Kernel.html")
      return {
        pass: missing.length === 0 && !tasks.includes("modules") && kinds.length > 3 && !kinds.includes("Other"),
        figure: `${tasks.join(", ")}; Kernel: ${kinds.join(", ")}; missing: ${missing.join(", ") || "none"}`
      }
    }),
    await attempt("commands to install are tabs for Node, Bun and Deno, chosen once for all pages", () =>
      chosen(page, url, "Deno").then((text) => ({ pass: text.startsWith("deno add npm:kernai"), figure: text }))
    ),
    await attempt("the landing page, a guide and a module fit a phone of 380 pixels", () =>
      tooWide(browser, url).then((found) => ({
        pass: found.length === 0,
        figure: found.join("; ") || `${places.length} pages`
      }))
    ),
    await attempt("the landing page shows the loop, how to install, and where to begin", async () => {
      await page.goto(url)
      const steps = await page.locator(".landing ol li b").allTextContents()
      const links = await page.locator(".landing nav a").count()
      return { pass: steps.length === 5 && links === 5, figure: `${steps.join(" → ")}; ${links} links` }
    }),
    await attempt("axe finds nothing serious on the landing page and a guide, in both themes", () =>
      reached(browser, url).then((found) => ({
        pass: found.length === 0,
        figure: found.join("; ").slice(0, 400) || `0 on ${own.length * 2} views`
      }))
    )
  ])

/** The built site, looked at in a browser. */
export const site = async (): Promise<ReadonlyArray<Line>> => {
  if (program === undefined) return [{ line: "the site in Chromium", pass: false, figure: "no Chromium here" }]
  const browser = await launch()
  try {
    return await served((url) => lines(browser, url))
  } finally {
    await browser.close()
  }
}
