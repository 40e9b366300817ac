/**
 * The TypeScript samples of the documentation.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".md"))
  .map((file) => join("docs", file))

export const pages: ReadonlyArray<string> = ["README.md", "AGENTS.md", "CONTRIBUTING.md", "llms.txt", ...docs]

/** Samples of a page share a folder, so one that begins with its file name can be imported by the next ones. */
export const samples = pages.flatMap((page) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = ""], index) => ({
    folder: page.replace(/\W+/g, "-"),
    name: /^\/\/ (?:Needs .*?\. )?([\w.]+\.ts)$/m.exec(text)?.[1] ?? `sample${index + 1}.ts`,
    text
  }))
)
