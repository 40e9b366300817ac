import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Logger, Option, Path, Redacted, Schedule, Stream } from "effect"
import { inspect } from "node:util"
import * as SkillFileLoader from "../../src/file/SkillFileLoader.ts"
import * as Redaction from "../../src/Redaction.ts"
import * as SkillFiles from "../../src/file/SkillFiles.ts"
import * as SkillRegistry from "../../src/SkillRegistry.ts"
import { scope } from "../support/skillSpec.ts"

/** Files stand outside the project, so they name what they import by URL. */
const effect = import.meta.resolve("effect")
const skill = import.meta.resolve("../../src/Skill.ts")

const code = (name: string, answer: string) => `
import { Effect, Schema } from "${effect}"
import * as Skill from "${skill}"
const answer: string = ${JSON.stringify(answer)}
export default Skill.make("${name}", {
  description: "",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(answer)
})
`

const setUp = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = yield* fs.makeTempDirectoryScoped()
  const write = (name: string, text: string) => fs.writeFileString(path.join(directory, name), text)
  const remove = (name: string) => fs.remove(path.join(directory, name))
  const moveAway = fs.rename(directory, path.join(yield* fs.makeTempDirectoryScoped(), "away"))
  const removeAll = fs.remove(directory, { recursive: true })
  const makeAgain = fs.makeDirectory(directory)
  const subfolder = (name: string) => fs.makeDirectory(path.join(directory, name), { recursive: true })
  const load = (files?: ReadonlyArray<string>) =>
    Effect.map(Layer.build(SkillFileLoader.layer({ directory, files, debounce: "20 millis" })), (context) =>
      Context.get(context, SkillFiles.SkillFiles)
    )
  const registry = yield* SkillRegistry.SkillRegistry
  const names = Effect.map(registry.all, (skills) => skills.map((skill) => skill.name))
  const answer = (name: string) =>
    Option.match(registry.find(name), {
      onNone: () => Effect.succeed("not found"),
      onSome: (skill) => skill.call({}, scope)
    })
  return { subfolder, write, remove, moveAway, removeAll, makeAgain, load, names, answer }
})

/** Waits until these skills are there. */
const until = (files: SkillFiles.SkillFilesShape, ...skills: ReadonlyArray<string>) =>
  files.changes.pipe(
    Stream.filter((status) => status.problem === undefined && status.skills.join() === skills.join()),
    Stream.runHead,
    Effect.timeout("10 seconds")
  )

const live = Layer.merge(SkillRegistry.layer(), NodeServices.layer)

describe("SkillFileLoader", () => {
  it.live("loads skill files and ignores helpers, tests and declarations", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      yield* folder.write("b.ts", code("b", "b"))
      yield* folder.write("a.mjs", code("a", "a").replace(": string", ""))
      for (const other of ["_helper.ts", ".hidden.ts", "a.test.ts", "a.d.ts", "README.md", "a.json"]) {
        yield* folder.write(other, "this is no code")
      }
      yield* folder.load()
      assert.deepStrictEqual(yield* folder.names, ["a", "b"])
      assert.strictEqual(yield* folder.answer("b"), "b")
    }).pipe(Effect.provide(live))
  )

  it.live("loads and watches the files of subfolders that match a glob", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      for (const subfolder of ["sales/eu", "_drafts", ".cache", "node_modules/pack"]) yield* folder.subfolder(subfolder)
      for (const [file, name] of [
        ["top.ts", "top"],
        ["sales/offer.ts", "offer"],
        ["sales/eu/vat.ts", "vat"]
      ] as const) {
        yield* folder.write(file, code(name, name))
      }
      for (const other of ["_drafts/a.ts", ".cache/b.ts", "node_modules/pack/c.ts", "sales/offer.test.ts"]) {
        yield* folder.write(other, "this is no code")
      }
      const all = yield* folder.load(["**"])
      assert.deepStrictEqual(yield* folder.names, ["vat", "offer", "top"])
      yield* folder.write("sales/eu/iban.ts", code("iban", "iban"))
      yield* until(all, "iban", "vat", "offer", "top")
    }).pipe(Effect.provide(live))
  )

  for (const [globs, skills] of [
    [["sales/*.ts"], "offer"],
    [["**/*.ts"], "vat,offer,top"],
    [["./sales/**/v?t.ts", "t*"], "vat,top"],
    [["{sales,other}/*"], "offer"],
    [["sales"], ""]
  ] as const) {
    it.live(`chooses files by ${globs.join(" and ")}`, () =>
      Effect.gen(function* () {
        const folder = yield* setUp
        yield* folder.subfolder("sales/eu")
        yield* folder.write("top.ts", code("top", "top"))
        yield* folder.write("sales/offer.ts", code("offer", "offer"))
        yield* folder.write("sales/eu/vat.ts", code("vat", "vat"))
        yield* folder.load(globs)
        assert.strictEqual((yield* folder.names).join(), skills)
      }).pipe(Effect.provide(live))
    )
  }

  it.live("refuses a glob that leads out of the folder or does not parse, by its name", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      for (const glob of ["../*.ts", "/etc/*", "a//b", "[z-a]"]) {
        const error = yield* Effect.flip(folder.load([glob]))
        assert.strictEqual(error.problems[0]?.file, glob)
      }
    }).pipe(Effect.provide(live))
  )

  it.live("imports a file again each time it changes", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      yield* folder.write("a.ts", code("a", "one"))
      const files = yield* folder.load()
      for (const text of ["two", "six", "ten"]) {
        yield* folder.write("a.ts", code("a", text))
        yield* files.reload
        assert.strictEqual(yield* folder.answer("a"), text)
      }
    }).pipe(Effect.provide(live))
  )

  it.live("reloads a file that was saved without changes", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      const counting = code("a", "").replace("() => Effect.succeed(answer)", "() => Effect.sync(() => String(++calls))")
      yield* folder.write("a.ts", `let calls = 0\n${counting}`)
      const files = yield* folder.load()
      assert.strictEqual(yield* folder.answer("a"), "1")
      yield* Effect.sleep("5 millis")
      yield* folder.write("a.ts", `let calls = 0\n${counting}`)
      yield* files.reload
      assert.strictEqual(yield* folder.answer("a"), "2")
    }).pipe(Effect.provide(live))
  )

  it.live("watches the folder: a saved, a new and a removed file", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      yield* folder.write("a.ts", code("a", "one"))
      const files = yield* folder.load()
      yield* folder.write("b.ts", code("b", "b"))
      yield* until(files, "a", "b")
      yield* folder.remove("a.ts")
      yield* until(files, "b")
      assert.strictEqual(yield* folder.answer("a"), "not found")
    }).pipe(Effect.provide(live))
  )

  it.live("watches a folder again after it was removed or moved away and restored", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      yield* folder.write("a.ts", code("a", "one"))
      const files = yield* folder.load()
      yield* folder.removeAll
      yield* folder.makeAgain
      yield* folder.write("b.ts", code("b", "two"))
      yield* until(files, "b")
      yield* folder.moveAway
      yield* Effect.sleep("50 millis")
      yield* folder.makeAgain
      yield* folder.write("c.ts", code("c", "three"))
      yield* until(files, "c")
      yield* folder.write("d.ts", code("d", "four"))
      yield* until(files, "c", "d")
    }).pipe(Effect.provide(live))
  )

  it.live("keeps the previous skills when a file throws, does not parse or exports nothing (W-32)", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      yield* folder.write("a.ts", code("a", "one"))
      const files = yield* folder.load()
      const unreadable = "throw { toString: () => { throw 1 } }"
      for (const broken of ["throw new Error('on load')", unreadable, "export default {", "export const x = 1"]) {
        // This one first: whoever watches the folder may load what lies between the two.
        yield* folder.write("b.ts", broken)
        yield* folder.write("a.ts", code("a", "half"))
        const error = yield* Effect.flip(files.reload)
        assert.deepStrictEqual(
          error.problems.map((problem) => problem.file),
          ["b.ts"]
        )
        assert.strictEqual(yield* folder.answer("a"), "one")
      }
      yield* folder.remove("b.ts")
      yield* files.reload
      assert.strictEqual(yield* folder.answer("a"), "half")
    }).pipe(Effect.provide(live))
  )

  it.live("keeps a key thrown by a loading file out of the error, the status and the log (S-7)", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      const lines: Array<string> = []
      yield* folder.write("a.ts", code("a", "one"))
      yield* Effect.gen(function* () {
        const files = yield* folder.load()
        yield* folder.write("b.ts", "throw new Error('refused sk-SECRET-0123456789abcdef and plain-secret')")
        const status = yield* files.changes.pipe(
          Stream.filter(({ problem }) => problem !== undefined),
          Stream.runHead,
          Effect.timeout("10 seconds")
        )
        const error = yield* Effect.flip(files.reload)
        assert.strictEqual(error.problems[0]?.reason, "refused <redacted> and <redacted>")
        const told = [JSON.stringify(status), inspect(error, { depth: 20 }), error.message]
        yield* Effect.repeat(
          Effect.sync(() => lines.length),
          { while: (count) => count === 0, schedule: Schedule.spaced("5 millis") }
        )
        for (const text of [...told, ...lines])
          for (const secret of ["sk-SECRET", "plain-secret"]) assert.notInclude(text, secret)
        assert.include(lines[0], "b.ts: refused <redacted> and <redacted>")
      }).pipe(
        Effect.provide(
          Layer.merge(
            Redaction.layer({ secrets: [Redacted.make("plain-secret")] }),
            Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
          )
        )
      )
    }).pipe(Effect.provide(live))
  )

  it.live("fails when the folder does not exist", () =>
    Effect.gen(function* () {
      const missing = SkillFileLoader.layer({ directory: "/nowhere/at/all" })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(missing)))
      assert.instanceOf(error, SkillFiles.SkillFilesInvalid)
      assert.include(error.message, "/nowhere/at/all: cannot be read (NotFound)")
    }).pipe(Effect.provide(live))
  )
})
