// The pages around the documents: a landing page, the next and the previous page, samples that run, commands for each
// runtime, and the design.
import { readFileSync, writeFileSync } from "node:fs"
import { JSX, PageEvent, ReflectionKind } from "typedoc"
import { installs } from "./installs.mjs"
import { runnable, writeSamples } from "./samples.mjs"
import { pages, root } from "./typedoc.config.mjs"

const samples = runnable(pages)

const unescaped = (html) =>
  html
    .replaceAll("<br/>", "\n")
    .replaceAll(/<[^>]+>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

/** Marks the samples of a page that run in a browser with the names of their modules. */
const markSamples = (html) =>
  html.replaceAll(/<pre>(<code class="ts">([\s\S]*?)<\/code>)/g, (whole, code, text) => {
    const name = samples.get(unescaped(text).trim())
    return name === undefined ? whole : `<pre data-sample="${name}">${code}`
  })

const command = (text) => `<pre><code class="sh">${text}</code><button type="button">Copy</button></pre>`

/** Shows commands that install packages for each runtime, of which the page shows one. */
const markInstalls = (html) =>
  html.replaceAll(/<pre><code class="sh">([\s\S]*?)<\/code>[\s\S]*?<\/pre>/g, (whole, code) => {
    const panels = installs(unescaped(code))?.map(
      ({ runtime, text }) => `<div data-runtime="${runtime}">${command(text)}</div>`
    )
    return panels === undefined ? whole : `<div class="tabs">${panels.join("")}</div>`
  })

const raw = (html) => JSX.createElement(JSX.Raw, { html })
const card = (href, name, about) => `<a href="${href}"><b>${name}</b>${about}</a>`

/** The steps of the loop, in the words of "Concepts". */
const loop = [
  ["Prompt", "built from messages, memory and limits"],
  ["Model", "asked, and read while it streams"],
  ["Reply", "calls, a plan, or the answer"],
  ["Calls", "checked, confirmed by a person, run"],
  ["Record", "stored before it is published"]
]

const landing = (context) => {
  const to = (name) => context.urlTo(context.page.project.documents.find((document) => document.name === name))
  const cards = [
    card(to("Start here"), "Start here", "install, the first run, five minutes"),
    card(to("Tutorial: a support desk"), "Tutorial", "a support desk, step by step"),
    card(to("Documentation"), "Recipes", "one page for each task"),
    card(to("Coming from another library"), "Coming from", "your program, in kernai"),
    card("modules/kernai.html", "Reference", "the modules, grouped by task")
  ]
  const steps = loop.map(([name, about]) => `<li><b>${name}</b>${about}</li>`)
  return raw(
    `<section class="landing"><h2>Agents that lose nothing, in Effect</h2>
<p>A run is a loop whose every step is stored: it survives crashes, deployments and people who answer days later.</p>
${command("npm install kernai effect@4.1.0")}
<ol aria-label="The loop">${steps.join("")}</ol><nav aria-label="Where to begin">${cards.join("")}</nav></section>`
  )
}

/** Links to the pages before and after a document, in the order of the documentation. */
const neighbours = (context) => {
  const { model, project } = context.page
  const documents = project.documents ?? []
  const at = documents.indexOf(model)
  const link = (document, word) =>
    document === undefined ? "" : `<a href="${context.urlTo(document)}" rel="${word}"><b>${document.name}</b>${word}</a>`
  return raw(
    `<nav class="steps" aria-label="Pages">${link(documents[at - 1], "prev")}${link(documents[at + 1], "next")}</nav>`
  )
}

/** Registers the plugin. */
export const load = ({ renderer }) => {
  renderer.hooks.on("content.begin", (context) =>
    context.page.url === "index.html" ? landing(context) : raw("")
  )
  renderer.hooks.on("content.end", (context) =>
    context.page.model.kindOf?.(ReflectionKind.Document) ? neighbours(context) : raw("")
  )
  renderer.on(PageEvent.END, (page) => {
    page.contents = markInstalls(markSamples(page.contents ?? ""))
  })
  renderer.postRenderAsyncJobs.push(async ({ outputDirectory }) => {
    const tokens = readFileSync(`${root}src/studio/page/style/tokens.css`)
    writeFileSync(`${outputDirectory}/assets/tokens.css`, tokens)
    await writeSamples(samples, `${outputDirectory}/assets`)
    console.log(`${samples.size} samples run in a browser`)
  })
}
