/**
 * The sources as modules, imports and rooms, read as text.
 */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"

export const root = join(import.meta.dirname, "../..")
export const src = join(root, "src")

/** All TypeScript files below a folder, as paths inside it. */
export const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file))

/** An import of one source file by another, as paths inside `src`. */
export interface Import {
  readonly from: string
  readonly to: string
  readonly typesOnly: boolean
}

const statement = /(?:^|\n)\s*(?:import|export)\s+(type\s)?([^"';]*?)from\s+"(\.[^"]+)"|import\("(\.[^"]+)"\)/g

const typesOnly = (names: string): boolean => {
  const list = /^\{([^}]*)\}\s*$/.exec(names.trim())?.[1]
  return list !== undefined && list.split(",").every((name) => name.trim() === "" || name.trim().startsWith("type "))
}

/** Every import between source files, type imports included. */
export const imports: ReadonlyArray<Import> = filesIn(src).flatMap((from) => {
  const text = readFileSync(join(src, from), "utf8").replace(/\/\*[^]*?\*\//g, "")
  return [...text.matchAll(statement)].map(([, type, names = "", path, dynamic]) => ({
    from,
    to: normalize(join(dirname(from), path ?? dynamic ?? "")),
    typesOnly: type !== undefined || typesOnly(names)
  }))
})

/** A room of the heart: its files in `internal/`, and the public modules it serves. */
export interface Room {
  readonly name: string
  readonly modules: ReadonlyArray<string>
}

/** The rooms of the table in AGENTS.md, in order: a room imports itself and the rooms before it. */
export const rooms: ReadonlyArray<Room> = [
  ...readFileSync(join(root, "AGENTS.md"), "utf8").matchAll(/^\| `([a-z-]+)` \| [^|]* \| ([^|]*) \|$/gm)
].map(([, name = "", modules = ""]) => ({ name, modules: modules.match(/[A-Z]\w+/g) ?? [] }))

/** Folders beside the heart that reach the outside world. */
export const doors: ReadonlyArray<string> = [
  ...readFileSync(join(root, "AGENTS.md"), "utf8").matchAll(/^\| `src\/([a-z]+)\/` \| door/gm)
].map(([, name = ""]) => name)

/** The applications on top of everything, each after those it may import. */
export const applications: ReadonlyArray<string> = [
  ...readFileSync(join(root, "AGENTS.md"), "utf8").matchAll(/^\| `src\/([a-z]+)\/` \| application/gm)
].map(([, name = ""]) => name)

/** Where a file stands: the name of its room, its door, or its application. Undefined for a public module that no room names. */
export const placeOf = (file: string): string | undefined => {
  const [first = "", second = ""] = file.split("/")
  if (first === "internal") return second
  if (file.includes("/")) return first
  return rooms.find(({ modules }) => modules.includes(file.replace(/\.ts$/, "")))?.name
}

/** Does a file belong to the heart? */
export const isHeart = (file: string): boolean => !file.includes("/") || /^(?:internal|kit|store-kit)\//.test(file)

/** Imports of the heart that go to a later room, types included. */
export const climbing = (): ReadonlyArray<Import> => {
  const floor = (file: string) => rooms.findIndex(({ name }) => name === placeOf(file))
  return imports.filter(
    ({ from, to }) => from !== "index.ts" && isHeart(from) && isHeart(to) && floor(to) > floor(from)
  )
}

/** Groups of modules that import each other in a circle. */
export const circles = (edges: ReadonlyArray<Import>): ReadonlyArray<ReadonlyArray<string>> => {
  const next = new Map<string, Array<string>>()
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to])
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const open: Array<string> = []
  const found: Array<ReadonlyArray<string>> = []
  const visit = (file: string): number => {
    const own = index.size
    index.set(file, own)
    low.set(file, own)
    open.push(file)
    for (const to of next.get(file) ?? []) {
      const reached = index.has(to) ? (open.includes(to) ? (index.get(to) ?? own) : own) : visit(to)
      low.set(file, Math.min(low.get(file) ?? own, reached))
    }
    if (low.get(file) === own) {
      const circle = open.splice(open.indexOf(file))
      if (circle.length > 1) found.push(circle)
    }
    return low.get(file) ?? own
  }
  for (const file of next.keys()) if (!index.has(file)) visit(file)
  return found
}

/** Base names that occur in several folders, regardless of case. */
export const repeatedNames = (): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  for (const file of filesIn(src)) {
    const name = basename(file).toLowerCase()
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].flatMap(([name, count]) => (count > 1 && name !== "index.ts" ? [name] : []))
}
