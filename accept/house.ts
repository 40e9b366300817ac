/**
 * The house: how the code stands, counted from its own files.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { circles, climbing, filesIn, imports, isHeart, repeatedNames, rooms, src } from "../test/support/house.ts"
import { attempt, benched, inFolder, type Line, node, root, run } from "./support.ts"

const linesOf = (file: string): number => readFileSync(file, "utf8").split("\n").length - 1

const atMost = (line: string, value: number, bound: number, more = ""): Line => ({
  line,
  pass: value <= bound,
  figure: `${value} (at most ${bound})${more}`
})

// ---------------------------------------------------------------- the loop

const loop = ["loop/loop", "loop/turn", "loop/calls", "model/intent", "call/dispatch", "run/commit"].map(
  (name) => `internal/${name}.ts`
)

const loopLines = (): Line => {
  const lines = loop.map((file) => linesOf(join(src, file)))
  const sum = lines.reduce((a, b) => a + b, 0)
  return atMost("lines of the loop, in six files", sum, 600, `: ${lines.join(" + ")}`)
}

// ---------------------------------------------------------------- rooms

const roomLines = (): ReadonlyArray<Line> => [
  {
    line: "rooms import only earlier rooms, types included",
    pass: rooms.length > 0 && climbing().length === 0,
    figure: `${rooms.length} rooms, ${imports.length} imports, ${climbing().length} to a later room`
  },
  atMost(
    "circles of modules in the heart, types included",
    circles(imports).filter((it) => it.every(isHeart)).length,
    0
  ),
  atMost("base names that occur twice", repeatedNames().length, 0, repeatedNames().join(" "))
]

// ---------------------------------------------------------------- sizes

const sizes = (): ReadonlyArray<Line> => {
  const files = filesIn(src)
  const lines = files.map((file) => ({ file, lines: linesOf(join(src, file)) }))
  const sum = (of: ReadonlyArray<{ readonly lines: number }>) => of.reduce((total, { lines }) => total + lines, 0)
  const sorted = lines.map(({ lines }) => lines).sort((a, b) => a - b)
  const longest = lines.toSorted((a, b) => b.lines - a.lines)[0]
  return [
    atMost("lines of src", sum(lines), 50_000, ` in ${files.length} files`),
    atMost("lines of the heart", sum(lines.filter(({ file }) => isHeart(file))), 22_000),
    atMost(
      "median lines of a file",
      sorted[sorted.length >> 1] ?? 0,
      150,
      `, longest ${longest?.lines} (${longest?.file})`
    )
  ]
}

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

// ---------------------------------------------------------------- hello

/** Source files that the first example loads. */
const loaded = () =>
  inFolder((folder) => {
    const { status, stderr } = node(["--conditions=kernai-source", "examples/01-hello.ts"], {
      env: { NODE_V8_COVERAGE: folder }
    })
    if (status !== 0) throw new Error(stderr)
    const urls = readdirSync(folder).flatMap((file) => {
      const coverage: { readonly result: ReadonlyArray<{ readonly url: string }> } = JSON.parse(
        readFileSync(join(folder, file), "utf8")
      )
      return coverage.result.map(({ url }) => url)
    })
    const count = new Set(urls.filter((url) => url.includes("/src/") && !url.includes("node_modules"))).size
    return { pass: count < 120, figure: `${count} (under 120)` }
  })

// ---------------------------------------------------------------- declarations

/** The declarations of public modules, as the build writes them. */
const declarations = () =>
  inFolder((folder): ReadonlyArray<Line> => {
    const built = run(process.execPath, [
      "node_modules/typescript/bin/tsc",
      "-p",
      "tsconfig.build.json",
      "--outDir",
      folder,
      "--emitDeclarationOnly"
    ])
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".d.ts") && !/(^|\/)internal\/|^cli\//.test(file)
    )
    const texts = files.map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") }))
    const matches = (pattern: RegExp) =>
      texts.flatMap(({ file, text }) => (text.match(pattern) ?? []).map((it) => `${file}: ${it}`))
    const rules = matches(/\b(?:BP|W|DR|AC|CP|R|S)-\d+\b/g)
    const words = matches(/\b(?:toolCallId|toolName|timeLimit|approvals)\b\??:/g)
    const tags = texts
      .filter(({ file }) => !tagged.test(file))
      .flatMap(({ file, text }) => (text.match(/readonly type: "\w+"/g) ?? []).map((it) => `${file}: ${it}`))
    return [
      {
        line: "public modules are declared",
        pass: built.status === 0 && files.length > 60,
        figure: `${files.length} files${built.stdout.trim().slice(0, 200)}`
      },
      atMost("rule numbers in public declarations", rules.length, 0, ` ${rules.slice(0, 5).join(", ")}`),
      atMost("old words in public declarations", words.length, 0, ` ${words.slice(0, 5).join(", ")}`),
      atMost("unions told apart by a second tag", tags.length, 0, ` ${tags.slice(0, 5).join(", ")}`)
    ]
  })

/** Events, stored data and wire formats have `type`. */
const tagged =
  /^(?:RunEvent|RunState|RunModel|RunRecord|Content|ContentModel|StreamPart|BlockParser|Block|RunCodec)\.d\.ts$/

// ---------------------------------------------------------------- the quick suite

const quickSuite = (): Line => {
  const ran = run("npm", ["test"], { env: { CI: "true" } })
  const lines = ran.stdout.trim().split("\n").length
  const summary = /Tests\s+(.*)/.exec(ran.stdout)?.[1]?.trim() ?? "no tests"
  return {
    line: "npm test: passed, within 75 s and one screen",
    pass: ran.status === 0 && ran.seconds <= 75 && lines <= 50,
    figure: `${summary} in ${ran.seconds.toFixed(1)} s, ${lines} lines`
  }
}

/** What can be counted without running a test or a benchmark. */
export const structure = async (): Promise<ReadonlyArray<Line>> => [
  loopLines(),
  ...roomLines(),
  ...sizes(),
  await attempt("functions are at most a screen long", longFunctions),
  await attempt("files that examples/01-hello.ts loads", loaded),
  ...(await declarations())
]

export const house = async (): Promise<ReadonlyArray<Line>> => [
  ...(await structure()),
  quickSuite(),
  ...["loop", "tokens", "runs", "heap", "store", "start", "parser"].flatMap(benched)
]
