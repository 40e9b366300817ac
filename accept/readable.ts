/**
 * What a reader meets: functions of a screen, and declarations in the words of the documentation.
 */
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { samples } from "../test/support/samples.ts"
import { compile, consumer, type Packed } from "./packed.ts"
import { atMost, attempt, inFolder, type Line, node, root } from "./support.ts"

/** Functions that the linter finds longer than a screen. */
const longFunctions = () =>
  inFolder((folder) => {
    const config = join(folder, "oxlint.json")
    const rule = ["error", { max: 60, skipBlankLines: false, skipComments: false }]
    writeFileSync(
      config,
      JSON.stringify({ categories: { correctness: "off" }, rules: { "max-lines-per-function": rule } })
    )
    const { stdout } = node(["node_modules/oxlint/bin/oxlint", "-c", config, "--format=json", "src"])
    const report: {
      readonly diagnostics: ReadonlyArray<{
        readonly message: string
        readonly filename: string
        readonly labels: ReadonlyArray<{ readonly span: { readonly line: number } }>
      }>
    } = JSON.parse(stdout)
    const found = report.diagnostics.map(({ filename, labels, message }) => {
      const [, lines = "0"] = /has too many lines \((\d+)\)/.exec(message) ?? []
      return { where: `${relative(root, join(root, filename))}:${labels[0]?.span.line ?? 0}`, lines: Number(lines) }
    })
    const over = found.filter(({ lines }) => lines > 100)
    const named = found
      .toSorted((a, b) => b.lines - a.lines)
      .slice(0, 8)
      .map(({ lines, where }) => `${where} ${lines}`)
    return {
      pass: over.length === 0 && found.length <= 10,
      figure: `${found.length} over 60 lines (at most 10), ${over.length} over 100: ${named.join(", ")}`
    }
  })

/** The declarations of public modules, as the package has them. */
const declarations = (packed: Packed): ReadonlyArray<Line> => {
  const dist = join(packed.clone, "dist")
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".d.ts") && !/(^|\/)internal\/|^(?:cli|kit)\//.test(file)
  )
  const texts = files.map((file) => ({ file, text: readFileSync(join(dist, file), "utf8") }))
  const matches = (pattern: RegExp) =>
    texts.flatMap(({ file, text }) => (text.match(pattern) ?? []).map((it) => `${file}: ${it}`))
  const rules = matches(/\b(?:BP|W|DR|AC|CP|R|S)-\d+\b/g)
  const words = matches(/\b(?:toolCallId|toolName|timeLimit|approvals)\b\??:/g).filter((it) => !bridge.test(it))
  const tags = texts
    .filter(({ file }) => !tagged.test(file))
    .flatMap(({ file, text }) => (text.match(/readonly type: "\w+"/g) ?? []).map((it) => `${file}: ${it}`))
  return [
    { line: "public modules are declared", pass: files.length > 60, figure: `${files.length} files` },
    instantiations(packed),
    atMost("rule numbers in public declarations", rules.length, 0, ` ${rules.slice(0, 5).join(", ")}`),
    atMost("old words in public declarations", words.length, 0, ` ${words.slice(0, 5).join(", ")}`),
    atMost("unions told apart by a second tag", tags.length, 0, ` ${tags.slice(0, 5).join(", ")}`)
  ]
}

/** What the compiler instantiates for all files of the tutorial, over the declarations that a user has. */
const instantiations = (packed: Packed): Line => {
  const folder = consumer(packed, "tutorial", { skipLibCheck: true, allowImportingTsExtensions: true, noEmit: true })
  for (const name of ["@effect/vitest", "vitest"]) {
    symlinkSync(join(packed.clone, "node_modules", name), join(folder, "node_modules", name))
  }
  const files = samples.filter((sample) => sample.folder === "docs-tutorial-md")
  for (const { name, text } of files) writeFileSync(join(folder, name), text)
  const { status, stdout } = compile(packed, folder, ["--singleThreaded", "--extendedDiagnostics"])
  const [, count = "NaN"] = /Instantiations:\s+(\d+)/.exec(stdout) ?? []
  const error = status === 0 ? "" : `, but ${stdout.slice(0, 300)}`
  const line = atMost("instantiations of types for the tutorial", Number(count), 70_000, error)
  return { ...line, pass: line.pass && status === 0 && files.length > 5 }
}

/** The types of another package have its words. */
const bridge = /^provider\/AiSdkTools\.d\.ts: toolCallId:/

/** Events, stored data and wire formats have `type`. */
const tagged =
  /^(?:RunEvent|RunState|RunModel|RunRecord|Content|ContentModel|StreamPart|BlockParser|Block|RunCodec)\.d\.ts$/

export const readable = async (packed: Packed): Promise<ReadonlyArray<Line>> => [
  await attempt("functions are at most a screen long", longFunctions),
  ...declarations(packed)
]
