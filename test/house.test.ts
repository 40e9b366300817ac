/**
 * The floors of the house: who may import whom (a lint rule says the same while you type).
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { clientInfo } from "../src/mcp/internal/handshake.ts"

const root = join(import.meta.dirname, "..")
const src = join(root, "src")

const floors: ReadonlyArray<ReadonlySet<string>> = [
  "Address Usage Budget Limits Media Model Content BlockTypes Message Block BlockParser StreamPart Call Generation Plan KernelError",
  "Skill Protocol Agent RunEvent RunState",
  "LongResult Redaction Provider ModelRegistry Dialect SkillRegistry ProtocolRegistry MediaStore EventBus RunStore ChatHistory Memory SkillFiles SkillPack Policy Hooks Middleware InstructionBuilder PromptPipeline Recorder Telemetry RunCodec Grammar PartialOutput",
  "TaskScheduler Kernel RunWorker Chat"
].map((names) => new Set(names.split(" ")))
const doors = ["provider", "mcp", "file", "sql", "testing"]
const applications = ["cli"]

const files = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))

interface Import {
  readonly from: string
  readonly to: string
  readonly types: boolean
}

/** Every import of one source file by another, as paths under src. */
const imports: ReadonlyArray<Import> = files(src).flatMap((from) => {
  const text = readFileSync(join(src, from), "utf8")
  const found = text.matchAll(/(?:^|\n)\s*(import|export)\s+(type\s)?[^"';]*?from\s+"(\.[^"]+)"|import\("(\.[^"]+)"\)/g)
  return [...found].map((match) => ({
    from,
    to: normalize(join(dirname(from), match[3] ?? match[4] ?? "")),
    types: match[2] !== undefined
  }))
})

const roomOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] ?? "") : "heart")
const floorOf = (file: string): number => floors.findIndex((names) => names.has(file.replace(/\.ts$/, "")))

describe("the house", () => {
  it("is read as it is written", () => {
    assert.isAbove(imports.length, 200)
    assert.isTrue(imports.some(({ from, to }) => from === "Kernel.ts" && to === "Provider.ts"))
  })

  it("gives every module of the heart a floor", () => {
    const homeless = files(src).filter((file) => roomOf(file) === "heart" && file !== "index.ts" && floorOf(file) < 0)
    assert.deepStrictEqual(homeless, [])
  })

  it("knows every folder of it", () => {
    const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    assert.sameMembers(
      folders.map(({ name }) => name),
      ["internal", ...doors, ...applications]
    )
  })

  it("lets a module of the heart import its own floor or a lower one, types aside", () => {
    const wrong = imports.filter(
      ({ from, to, types }) =>
        !types &&
        roomOf(from) === "heart" &&
        roomOf(to) === "heart" &&
        from !== "index.ts" &&
        floorOf(to) > floorOf(from)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("keeps the heart free of doors and applications", () => {
    const outside = new Set([...doors, ...applications])
    const wrong = imports.filter(
      ({ from, to }) => ["heart", "internal"].includes(roomOf(from)) && outside.has(roomOf(to))
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("keeps doors from each other", () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        doors.includes(roomOf(from)) && roomOf(to) !== roomOf(from) && [...doors, ...applications].includes(roomOf(to))
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("has no cycle of modules, types aside", () => {
    const next = new Map<string, Array<string>>()
    for (const { from, to, types } of imports) if (!types) next.set(from, [...(next.get(from) ?? []), to])
    const done = new Set<string>()
    const cycles: Array<string> = []
    const visit = (file: string, above: ReadonlyArray<string>): void => {
      if (above.includes(file)) {
        cycles.push([...above.slice(above.indexOf(file)), file].join(" -> "))
        return
      }
      if (done.has(file)) return
      for (const to of next.get(file) ?? []) visit(to, [...above, file])
      done.add(file)
    }
    for (const file of next.keys()) visit(file, [])
    assert.deepStrictEqual(cycles, [])
  })

  it("needs nothing but effect in the heart", () => {
    const foreign = files(src)
      .filter((file) => ["heart", "internal"].includes(roomOf(file)))
      .flatMap((file) => {
        const text = readFileSync(join(src, file), "utf8").replace(/^ \*.*$/gm, "")
        return [...text.matchAll(/from\s+"([^."][^"]*)"/g)]
          .map((match) => match[1] ?? "")
          .filter((name) => name !== "effect" && !name.startsWith("effect/"))
          .map((name) => `${file}: ${name}`)
      })
    assert.deepStrictEqual(foreign, [])
  })

  it("gives every public module a path of its own, and what is internal none", () => {
    const isClosed = (file: string) => /(^|\/)(internal\/|index\.ts$)|^cli\//.test(file)
    const script = `
      const open = []
      for (const file of JSON.parse(process.argv[1])) {
        try {
          if (import.meta.resolve("kernai/" + file.slice(0, -3)).endsWith("/src/" + file)) open.push(file)
        } catch (error) {
          if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error
        }
      }
      console.log(JSON.stringify(open))`
    const all = files(src)
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=kernai-source", "--input-type=module", "--eval", script, JSON.stringify(all)],
      { cwd: root, encoding: "utf8" }
    )
    assert.strictEqual(stderr, "")
    const open = all.filter((file) => !isClosed(file))
    assert.isAbove(open.length, 60)
    assert.deepStrictEqual(JSON.parse(stdout), open)
  })

  it("calls itself to servers by the version it has", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    assert.strictEqual(clientInfo.version, version)
  })

  it("writes down no address of a registry in the lock files", () => {
    const locks = ["package-lock.json", "bench/package-lock.json"]
    const resolved = locks.filter((file) => /"resolved": *"http/.test(readFileSync(join(root, file), "utf8")))
    assert.deepStrictEqual(resolved, [], relative(root, src))
  })
})
