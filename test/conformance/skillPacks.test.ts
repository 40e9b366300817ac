/**
 * skill-packs.json: what a store over real folders lists, loads, reads and refuses (AC-16, AC-17).
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path, Result } from "effect"
import { Agent, Kernel, type Media, SkillRegistry } from "kernai"
import { SkillPack, SkillPackStore } from "kernai/file"
import { MockProvider } from "kernai/testing"
import { about, load, tally } from "../support/vectors.ts"

type Expected = { readonly [key: string]: unknown }
interface Op {
  readonly op: string
  readonly name?: string
  readonly path?: string
  readonly strict?: boolean
  readonly expect: Expected
}
interface Generated {
  readonly front_matter_filler?: number
  readonly body_filler?: number
  readonly base64?: string
  readonly [key: string]: unknown
}
interface Case {
  readonly id: string
  readonly title: string
  readonly files: { readonly [path: string]: string | Generated }
  readonly symlinks?:
    | { readonly [path: string]: string }
    | ReadonlyArray<{ readonly path: string; readonly target: string }>
  readonly roots?: ReadonlyArray<string>
  readonly ops: ReadonlyArray<Op>
}

const vectors = load<{ readonly cases: ReadonlyArray<Case> }>("skill-packs", {
  cases: [
    {
      ...about,
      files: {
        "*": {
          front_matter_filler: true,
          body_filler: true,
          base64: true,
          name: true,
          description: true,
          text: true
        }
      },
      symlinks: true,
      roots: true,
      // What is expected is looked through operation by operation.
      ops: [{ op: true, name: true, path: true, strict: true, expect: true, note: true }]
    }
  ]
})

/** Text, or bytes that a case only describes. */
const contentOf = (path: string, file: string | Generated): string | Uint8Array => {
  if (typeof file === "string") return file
  if (file.base64 !== undefined) return Buffer.from(file.base64, "base64")
  const name = file["name"] ?? path.split("/").at(-2)
  const filler = file.front_matter_filler === undefined ? "" : `# ${"x".repeat(file.front_matter_filler)}\n`
  const start = `---\nname: ${name}\ndescription: ${file["description"] ?? "x"}\n${filler}---\n`
  return `${file["text"] ?? start}${"x".repeat(file.body_filler ?? 0)}`
}

/** The case's files in a fresh folder, and a look at what is opened there. */
const setUp = Effect.fnUntraced(function* (vector: Case) {
  const real = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* real.makeTempDirectoryScoped()
  for (const [name, file] of Object.entries(vector.files)) {
    const target = path.join(base, name)
    yield* real.makeDirectory(path.dirname(target), { recursive: true })
    const content = contentOf(name, file)
    yield* typeof content === "string" ? real.writeFileString(target, content) : real.writeFile(target, content)
  }
  const links = Array.isArray(vector.symlinks)
    ? vector.symlinks.map(({ path, target }: { path: string; target: string }) => [path, target] as const)
    : Object.entries(vector.symlinks ?? {})
  for (const [from, to] of links) {
    yield* real.makeDirectory(path.dirname(path.join(base, from)), { recursive: true })
    yield* real.symlink(to, path.join(base, from))
  }
  const opened: Array<string> = []
  const fs = FileSystem.FileSystem.of({
    ...real,
    open: (file, options) =>
      Effect.andThen(
        Effect.sync(() => opened.push(path.relative(base, file))),
        real.open(file, options)
      )
  })
  const roots = (vector.roots ?? [""]).map((root) => path.join(base, root))
  const store = (strict: boolean) =>
    SkillPack.SkillPackStore.use(Effect.succeed).pipe(
      Effect.provide(SkillPackStore.layer({ roots, strict })),
      Effect.provideService(FileSystem.FileSystem, fs)
    )
  return { store, opened, nameOf: (dir: string) => path.relative(base, dir) }
})

type World = Effect.Success<ReturnType<typeof setUp>>

/** What an operation gave, under the names a case may expect. Nothing for an operation nobody knows. */
const perform = Effect.fnUntraced(function* (world: World, op: Op) {
  const store = yield* world.store(op.strict === true)
  switch (op.op) {
    case "list": {
      const listing = yield* Effect.result(store.list)
      if (Result.isFailure(listing)) return { error: listing.failure._tag }
      const { problems, skills, warnings } = listing.success
      return {
        names: skills.map(({ name }) => name),
        descriptionOf: Object.fromEntries(skills.map(({ description, name }) => [name, description])),
        metadataOf: Object.fromEntries(skills.map(({ metadata, name }) => [name, Object.fromEntries(metadata)])),
        allowedToolsOf: Object.fromEntries(skills.map(({ allowedTools, name }) => [name, allowedTools])),
        problems: problems.map(({ code, dir }) => ({ dir: world.nameOf(dir), code })),
        problemCount: problems.length,
        problemCodes: [...new Set(problems.map(({ code }) => code))].toSorted(),
        warnings: warnings.map(({ code, dir, field }) => ({ dir: world.nameOf(dir), code, field }))
      }
    }
    case "load": {
      const pack = yield* Effect.result(store.load(op.name ?? ""))
      if (Result.isFailure(pack)) return { error: pack.failure._tag }
      const { allowedTools, body, files, metadata, ...rest } = pack.success
      return {
        ...rest,
        body,
        bodyTrimmed: body.trim(),
        bodyBytes: new TextEncoder().encode(body).byteLength,
        files,
        metadata: Object.fromEntries(metadata),
        allowedTools
      }
    }
    case "read_file": {
      const file = yield* Effect.result(store.readFile(op.name ?? "", op.path ?? ""))
      if (Result.isFailure(file)) return { error: file.failure._tag }
      return typeof file.success === "string" ? { text: file.success } : mediaOf(file.success)
    }
    case "prompt_fragment": {
      const { skills } = yield* store.list
      const fragment = SkillPack.fragment(skills)
      return { text: fragment, fragment, contains: fragment, notContains: fragment }
    }
    case "load_through_agent":
      return { toolsRun: yield* throughAgent(store, op.name ?? "") }
    default:
      return undefined
  }
})

const mediaOf = ({ kind, mimeType, source }: Media.Media) => ({
  media: kind,
  kind,
  type: kind,
  mime: mimeType,
  mediaType: mimeType,
  bytes: source._tag === "Bytes" ? source.bytes.byteLength : 0
})

const throughAgent = (store: SkillPack.SkillPackStoreShape, name: string) => {
  const mock = MockProvider.make(
    `<block type="command" name="skills_load">${JSON.stringify({ name })}</block>`,
    `<block type="final">done</block>`
  )
  const skills = SkillPack.layerSkills.pipe(
    Layer.provide(Layer.succeed(SkillPack.SkillPackStore, store)),
    Layer.provideMerge(SkillRegistry.layer())
  )
  const agent = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text"] }, skills: "all" })
  return Kernel.run(agent, "go").pipe(
    Effect.provide(Kernel.layerMemory.pipe(Layer.provide([skills, MockProvider.layerOf(mock)]))),
    Effect.map((result) => result.calls.map(({ name }) => name))
  )
}

/** Compares what is expected; false when a key means nothing here. */
const check = (expected: Expected, actual: { readonly [key: string]: unknown }, where: string): boolean => {
  for (const [key, value] of Object.entries(expected)) {
    if (key !== "error" && "error" in actual) assert.deepStrictEqual(actual, expected, where)
    const found = actual[key]
    if (key === "error") assert.strictEqual(found, value, where)
    else if (found === undefined) return false
    else if (key === "contains" || key === "notContains") {
      for (const text of [value].flat()) {
        if (key === "contains") assert.include(String(found), String(text), where)
        else assert.notInclude(String(found), String(text), where)
      }
    } else if (key.endsWith("Of") || key === "metadata" || key === "files")
      assert.deepInclude(Object(found), Object(value), where)
    else if (key === "problemCodes") assert.deepStrictEqual(found, [value].flat().toSorted(), where)
    // No rule says in which order problems and warnings are told.
    else if (key === "problems" || key === "warnings") assert.sameDeepMembers([found].flat(), [value].flat(), where)
    else assert.deepStrictEqual(found, value, where)
  }
  return true
}

/** A case of ours: no rule says in which order problems are told. */
const twice: Case = {
  id: "two-problems",
  title: "two folders that lose their names are told in any order",
  files: Object.fromEntries(
    ["r1/a", "r2/a", "r2/b", "r3/b"].map((dir) => [
      `${dir}/SKILL.md`,
      `---\nname: ${dir.slice(3)}\ndescription: of ${dir}\n---\n`
    ])
  ),
  roots: ["r2", "r3", "r1"],
  ops: [
    {
      op: "list",
      expect: {
        names: ["a", "b"],
        problems: [
          { dir: "r1/a", code: "duplicate_name" },
          { dir: "r3/b", code: "duplicate_name" }
        ]
      }
    }
  ]
}

describe("skill-packs.json", () => {
  const counted = tally("skill-packs.json")

  for (const vector of [...vectors.cases, twice]) {
    it.effect(`${vector.id}: ${vector.title}`, () =>
      Effect.gen(function* () {
        const world = yield* setUp(vector)
        for (const [index, op] of vector.ops.entries()) {
          const where = `${vector.id} op ${index + 1}: ${op.op} ${op.name ?? ""} ${op.path ?? ""}`
          world.opened.length = 0
          const actual = yield* perform(world, op)
          if (actual === undefined || !check(op.expect, actual, where)) return counted.skip(where)
          if (op.expect["error"] === "InvalidSkillPath") {
            // Only what says which skills there are may have been opened.
            const others = world.opened.filter((file) => !/^skill\.md$/i.test(file.split("/").at(-1) ?? ""))
            assert.deepStrictEqual(others, [], where)
          }
        }
        counted.ran()
      }).pipe(Effect.provide(NodeServices.layer))
    )
  }

  counted.report()
})
