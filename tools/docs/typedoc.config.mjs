// The site: README and docs/*.md in the order of docs/README.md, and the reference of every door from its doc comments.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { tasks } from "./pages.mjs"

export const root = fileURLToPath(new URL("../../", import.meta.url))
const doors = ["provider", "mcp", "file", "sql", "http", "acp", "cluster", "code", "workspace", "guard", "studio", "testing", "store-kit"]

/** Pages that a page links to, in its order. */
const linked = (page) =>
  [...readFileSync(`${root}${page}`, "utf8").matchAll(/\]\(([^:)#]+\.md)/g)].map(([, link]) =>
    join(dirname(page), link)
  )
const guides = ["docs/README.md", "docs/spec/README.md"].flatMap((page) => [page, ...linked(page)])
const all = readdirSync(`${root}docs`, { recursive: true }).filter((file) => file.endsWith(".md"))
const unlinked = all.map((file) => join("docs", file)).filter((page) => !guides.includes(page))
if (unlinked.length > 0) throw new Error(`docs/README.md does not link to ${unlinked.join(", ")}`)
const ofProject = ["AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md"]
const documents = [...new Set([...guides, ...ofProject])].map((page) => `${root}${page}`)

/** All pages whose samples are shown. */
export const pages = [`${root}README.md`, ...documents]

export default {
  name: "kernai",
  entryPoints: [`${root}src/index.ts`, ...doors.map((door) => `${root}src/${door}/index.ts`)],
  plugin: ["./pages.mjs", "./site.mjs", "typedoc-plugin-missing-exports"],
  tsconfig: "tsconfig.json",
  readme: `${root}README.md`,
  favicon: `${root}src/studio/assets/icon.svg`,
  projectDocuments: documents,
  customCss: "page/page.css",
  customJs: "page/page.js",
  useFirstParagraphOfCommentAsSummary: true,
  searchInComments: true,
  searchInDocuments: true,
  out: `${root}site`,
  placeInternalsInOwningModule: true,
  excludeExternals: true,
  excludeInternal: true,
  // Types are checked by `npm run check`.
  skipErrorChecking: true,
  treatWarningsAsErrors: true,
  disableSources: true,
  includeHierarchySummary: false,
  includeVersion: true,
  highlightLanguages: ["bash", "css", "dockerfile", "elisp", "lua", "ini", "html", "json", "jsonc", "jsonl", "sh", "sql", "tsx", "typescript", "xml", "yaml"],
  groupOrder: ["Documents", "Recipes", "Specification", "Modules", "Project", "Namespaces", "*"],
  categoryOrder: [
    ...tasks.map(({ task }) => task),
    "Modules",
    "Running",
    "Chatting",
    "Constructors",
    "Combinators",
    "Getters",
    "*",
    "Layers",
    "References",
    "Services",
    "Schemas",
    "Codecs",
    "Models",
    "Errors",
    "Other"
  ],
  navigation: { includeGroups: true, includeCategories: true, includeFolders: false }
}
