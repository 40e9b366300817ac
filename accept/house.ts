/**
 * The house: what a reader meets and what a program executes, each with its bound.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { filesIn, imports, isHeart, placeOf, src } from "../test/support/house.ts"
import type { Entered } from "./coverage.ts"
import { outsideLines } from "./houseOutside.ts"
import { atMost, attempt, benched, inFolder, type Line, node, root } from "./support.ts"

/** A source without its comments. */
const codeOf = (file: string) => readFileSync(join(src, file), "utf8").replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "")

const code = filesIn(src).map((file) => ({ file, text: codeOf(file) }))

// ---------------------------------------------------------------- the wall

/** Imports, types included, by doors and applications of what the heart keeps to itself. */
const wall = (): Line => {
  const through = imports.filter(({ from, to }) => !isHeart(from) && /^(?:store-kit\/)?internal\//.test(to))
  const places = new Set(through.map(({ from }) => placeOf(from)))
  return atMost(
    "imports of `internal` by doors",
    through.length,
    0,
    through.length > 0 ? ` from ${[...places].join(", ")}` : ""
  )
}

// ---------------------------------------------------------------- what runs

/** Runs a program in a process of its own: the lines of the functions that it enters, by file. */
const entered = (...program: ReadonlyArray<string>): Entered => {
  const { status, stderr, stdout } = node(["--conditions=kernai-source", ...program])
  const line = stdout.split("\n").findLast((line) => line.startsWith("{"))
  if (status !== 0 || line === undefined) throw new Error(`${program.join(" ")} failed: ${stderr.slice(0, 300)}`)
  return JSON.parse(line)
}

/** Functions that the first example enters. They count whole, since a reader reads them whole. */
const hello = () =>
  attempt("lines of the functions that examples/01-hello.ts executes", () => {
    const lines = Object.values(entered("accept/hello.ts"))
    const sum = lines.reduce((a, b) => a + b, 0)
    return { pass: sum <= 3_500, figure: `${sum} (at most 3500) in ${lines.length} files` }
  })

/** Rooms whose modules are known by their names: a reader of a journey need not open them. */
const vocabulary = ["kit", "errors", "words"]

/** A file belongs to a journey from so many lines, or from a share of a short one. */
const isLong = (lines: number, all: number) => lines >= Math.min(50, all * 0.04)

/** The files of a journey as AGENTS.md lists them. */
const listed = (title: string): ReadonlyArray<string> => {
  const [, files = ""] =
    new RegExp(`^\\| ${title} \\| (.*) \\|$`, "m").exec(readFileSync(join(root, "AGENTS.md"), "utf8")) ?? []
  return [...files.matchAll(/`([^`]+)`/g)].map(([, file = ""]) => file)
}

/**
 * Files to understand a journey: those of the list in AGENTS.md. It must name every file whose functions take a part of
 * what the journey enters, and none that the journey does not enter.
 */
const journey = (name: string, title: string, bound: number) =>
  attempt(`files to understand ${title}, listed in AGENTS.md`, () => {
    const found = entered("accept/journeys.ts", name)
    const all = Object.values(found).reduce((a, b) => a + b, 0)
    const needed = Object.entries(found).flatMap(([file, lines]) => {
      const isKnown = vocabulary.includes(placeOf(file) ?? "") || file.startsWith("testing/")
      return isLong(lines, all) && !isKnown ? [file] : []
    })
    const files = listed(title)
    const missing = needed.filter((file) => !files.includes(file))
    const unused = files.filter((file) => found[file] === undefined)
    const faults = [
      ...missing.map((file) => `; not listed: ${file} ${found[file]}`),
      ...unused.map((file) => `; listed, but not entered: ${file}`)
    ]
    return {
      pass: files.length <= bound && files.length > 0 && faults.length === 0,
      figure: `${files.length} (at most ${bound}) of ${Object.keys(found).length} that run ${all} lines${faults.join("")}`
    }
  })

// ---------------------------------------------------------------- events

const eventTypes = (pattern: RegExp) => [
  ...new Set(
    code
      .filter(({ file }) => /^(?:RunEvent|internal\/state\/recordSchema)\.ts$/.test(file))
      .flatMap(({ text }) => [...text.matchAll(pattern)].map(([, type = ""]) => type))
  )
]

/** Replaces a text that must be there. */
const replaced = (text: string, from: string, to: string) => {
  if (!text.includes(from)) throw new Error(`the sources have no ${JSON.stringify(from)}`)
  return text.replace(from, to)
}

/** What describes a stored event: its schema, its interface, and its place in the union. */
const descriptions = {
  "internal/state/recordSchema.ts": (text: string) =>
    replaced(text, "  turn_completed: ", '  run_moved: lazily(() => event("run_moved", {})),\n  turn_completed: '),
  "RunRecord.ts": (text: string) =>
    replaced(
      replaced(
        text,
        "export type PhaseEvent",
        'export interface RunMoved extends Stored<"run_moved"> {}\n\nexport type PhaseEvent'
      ),
      "  | TurnCompleted\n",
      "  | TurnCompleted\n  | RunMoved\n"
    )
}

/** Files that a new stored event costs: those that describe it, and those of `src` that the compiler refuses then. */
const places = () =>
  attempt("files that a new stored event costs", () =>
    inFolder((folder) => {
      cpSync(src, join(folder, "src"), { recursive: true })
      for (const file of ["package.json", "tsconfig.json"]) cpSync(join(root, file), join(folder, file))
      symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
      for (const [file, describe] of Object.entries(descriptions)) {
        const described = join(folder, "src", file)
        writeFileSync(described, describe(readFileSync(described, "utf8")))
      }
      const project = join(folder, "tsconfig.event.json")
      writeFileSync(
        project,
        JSON.stringify({ extends: "./tsconfig.json", include: ["src"], exclude: ["src/studio/page"] })
      )
      const compiled = node([join(root, "node_modules/typescript/bin/tsc"), "-p", project, "--noEmit"], { cwd: folder })
      const refused = [...new Set([...compiled.stdout.matchAll(/^src\/([^(]*)\(/gm)].map(([, file = ""]) => file))]
      const files = [...new Set([...Object.keys(descriptions), ...refused])]
      // A state that ignores a stored event would be wrong, so the compiler must say so.
      return {
        pass: refused.includes("internal/state/advance.ts") && files.length <= 5,
        figure: `${files.length} (at most 5): ${files.join(", ")}`
      }
    })
  )

// ---------------------------------------------------------------- sizes

const linesOf = (files: typeof code) =>
  files.reduce((sum, { text }) => sum + text.split("\n").filter((line) => line.trim() !== "").length, 0)

const typesOfEvents = (): Line => {
  const types = eventTypes(/\b(?:Event<|event\()\s*"(\w+)"/g)
  const bounded = atMost("types of events", types.length, 50)
  // A way of writing them that is not found would count none.
  return types.includes("run_started") && types.includes("text_chunk") ? bounded : { ...bounded, pass: false }
}

const sizes = (): ReadonlyArray<Line> => [
  atMost("lines of the heart without comments and blanks", linesOf(code.filter(({ file }) => isHeart(file))), 20_000),
  atMost("lines of src without comments and blanks", linesOf(code), 55_000),
  typesOfEvents()
]

export const house = async (): Promise<ReadonlyArray<Line>> => [
  wall(),
  await hello(),
  await journey("run", "a run", 16),
  await journey("token", "a token", 9),
  await journey("resume", "a resume", 9),
  await journey("postgres", "a step on PostgreSQL", 12),
  await journey("answer", "an answer over HTTP", 14),
  await places(),
  ...sizes(),
  ...(await outsideLines()),
  ...benched("start", ["start.effect"]),
  ...benched("loop", ["loop.100.pi", "loop.1000.pi"]),
  ...benched("fresh")
]
