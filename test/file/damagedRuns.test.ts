import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ByteSize, Effect, Exit, FileSystem, Logger, Option, Stream } from "effect"
import { RunStore } from "kernai"
import * as fs from "node:fs"
import { FileRunStore } from "../../src/file/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import * as LongRun from "../support/longRun.ts"
import { loads, put, resume, soundUpTo } from "../support/runStore.ts"
import { at, next, refusing, stored } from "../support/fileRuns.ts"

describe("FileRunStore, on disk", () => {
  it.live(
    "notices every bit that is flipped in a journal, names its run, and lets no other run take its id",
    () =>
      Effect.gen(function* () {
        const find = Effect.fnUntraced(function* (records: number, every: number) {
          const directory = yield* folder
          const run = Journal.begin("run")
          const first = run.last()
          yield* put(yield* at(directory), [first, ...Journal.turn(run).slice(0, records - 1)])
          const kept = Option.getOrThrow(yield* (yield* at(directory)).load("run"))
          const journal = `${directory}/run.jsonl`
          const sound = fs.readFileSync(journal)
          const other = Journal.begin("run", { input: "another" }).last()
          const silent: Array<string> = []
          for (let bit = 0; bit < sound.length * 8; bit += every) {
            const damaged = Buffer.from(sound)
            damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
            fs.writeFileSync(journal, damaged)
            const store = yield* at(directory)
            const loaded = yield* Effect.exit(store.load("run"))
            const state = Exit.isSuccess(loaded) ? Option.getOrUndefined(loaded.value) : undefined
            const isSame =
              state?.revision === kept.revision && JSON.stringify(state.prompt) === JSON.stringify(kept.prompt)
            const text = String(loaded)
            const isNamed = /record \d+ of run 'run': (its checksum is wrong|it |a text|at )/.test(text)
            if (Exit.isSuccess(loaded) ? !isSame : !isNamed) silent.push(`bit ${bit}: ${text.slice(0, 200)}`)
            if (Exit.isSuccess(yield* Effect.exit(store.append([other.record], other.state)))) {
              silent.push(`bit ${bit}: another run took its id`)
            }
            assert.lengthOf(yield* store.list(), 1)
          }
          fs.writeFileSync(journal, sound)
          return silent
        })
        // Each of the eight bits of a byte is flipped by a step that is odd.
        assert.deepStrictEqual(yield* find(1, LongRun.times(1, 101)), [])
        assert.deepStrictEqual(yield* find(4, LongRun.times(1, 301)), [])
      }),
    LongRun.isLong ? 1_200_000 : 120_000
  )

  it.effect("reads a journal that became shorter after its size was read", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* stored
      const files = yield* FileSystem.FileSystem
      const before: FileSystem.FileSystem = {
        ...files,
        stat: (path) =>
          Effect.map(files.stat(path), (info) => ({ ...info, size: ByteSize.bytes(Number(info.size) + 100) }))
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, before)
      yield* loads(store, run.last())
      assert.lengthOf(yield* Stream.runCollect(store.read("run")), 11)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("ignores state parts that are missing, outdated or damaged, and writes them again", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const run = Journal.begin("run")
      const store = yield* at(directory)
      yield* put(store, [run.last()])
      for (let turn = 0; turn < 3; turn++) yield* put(store, Journal.turn(run, { text: "much ".repeat(110_000) }))
      const file = `${directory}/run.parts`
      const parts = fs.readFileSync(file, "utf8")
      const [first = ""] = parts.split("\n")
      const broken = ["", "nothing", parts.slice(0, -9), parts + first, parts.replace(/^\d+/, "1"), `${parts}7 {}\n`]
      // A place within a line behind the right one: what follows it does not go on from there.
      const last = parts.trimEnd().split("\n").at(-1) ?? ""
      broken.push(
        parts.replace(
          last,
          last.replace(/^\d+/, (offset) => `${Number(offset) + 10}`)
        )
      )
      for (const text of [undefined, ...broken, first.replace(/^\d+/, "9999999999")]) {
        if (text === undefined) fs.rmSync(file)
        else fs.writeFileSync(file, text)
        yield* loads(yield* at(directory), run.last())
      }
      // They are longer than the journal, and no head says how far that goes.
      fs.rmSync(`${directory}/run.json`)
      yield* loads(yield* at(directory), run.last())
      fs.writeFileSync(file, "nothing")
      const other = yield* at(directory)
      yield* resume(other, "run", Journal.turn(run, { text: "much ".repeat(220_000) }))
      assert.include(fs.readFileSync(file, "utf8"), `"turnId":"run:t4"`)
      yield* loads(yield* at(directory), run.last())
    })
  )

  it.effect("fails with a typed error when records are missing or damaged (R-1)", () =>
    Effect.gen(function* () {
      const { directory, journal, lines } = yield* stored
      const text = fs.readFileSync(journal, "utf8")
      const damaged = [
        lines().toSpliced(4, 1).join("\n"),
        lines().with(4, "x".repeat(40)).join("\n"),
        lines().slice(0, 9).join("\n"),
        lines().with(10, '{"format":2,"revision":11}').join("\n"),
        `{"format":2,"revision":1}\n${lines().slice(1).join("\n")}`
      ]
      for (const content of damaged) {
        fs.writeFileSync(journal, content)
        const error = yield* Effect.flip((yield* at(directory)).load("run"))
        assert.strictEqual(error.reason, "corrupt", content.slice(0, 200))
      }
      fs.writeFileSync(journal, text)
    })
  )

  it.effect("says which record of a journal is damaged, whatever its line still says, and why", () =>
    Effect.gen(function* () {
      const { directory, journal, lines, run } = yield* stored
      const fifth = lines()[4] ?? ""
      const damaged: ReadonlyArray<readonly [string, string]> = [
        [fifth.replace('"revision":', '"revision'), "its checksum is wrong"],
        [fifth.replace('"revision":5', '"revision":50'), "its checksum is wrong"],
        [fifth.replace('"revision":5', '"revision":2'), "its checksum is wrong"],
        ["}", "a text is not JSON"]
      ]
      const [text, { record, state }] = [fs.readFileSync(journal, "utf8"), next(run)]
      for (const [line, why] of damaged) {
        fs.writeFileSync(journal, lines().with(4, line).join("\n"))
        const error = yield* Effect.flip((yield* at(directory)).load("run"))
        assert.include(error.message, `record 5 of run 'run': ${why}`)
        // The records after it keep their numbers.
        const other = yield* Effect.flip(
          (yield* at(directory)).append([{ ...record, revision: 20 }], { ...state, revision: 20 })
        )
        assert.deepInclude(other, { _tag: "ConcurrentAppendError", actual: 11 })
        fs.writeFileSync(journal, text)
      }
    })
  )

  it.effect("reads and continues a journal whose last line break an editor removed", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const last = run.last()
      fs.writeFileSync(journal, fs.readFileSync(journal, "utf8").trimEnd())
      yield* loads(yield* at(directory), last)
      const store = yield* at(directory)
      yield* put(store, [next(run)])
      yield* loads(yield* at(directory), run.last())
      const revisions = (yield* Stream.runCollect(store.read("run"))).map(({ revision }) => revision)
      assert.deepStrictEqual(
        revisions,
        Array.from({ length: 12 }, (_, index) => index + 1)
      )
    })
  )

  it.effect("warns about a record whose checksum was removed", () => {
    const warnings: Array<string> = []
    const logger = Logger.make(({ message }) => void warnings.push(String(message)))
    return Effect.gen(function* () {
      const { directory, journal, lines, run } = yield* stored
      yield* loads(yield* at(directory), run.last())
      assert.deepStrictEqual(warnings, [])
      fs.writeFileSync(
        journal,
        lines()
          .with(4, lines()[4]?.replace(/"sum":"\w+",/, "") ?? "")
          .join("\n")
      )
      yield* loads(yield* at(directory), run.last())
      assert.deepStrictEqual(warnings, ["record 5 of run 'run' has no checksum, so damage to it is not noticed"])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("reads and forks a run up to a damaged record", () =>
    Effect.gen(function* () {
      const { directory, journal, lines } = yield* stored
      fs.writeFileSync(journal, lines().with(4, '{"format":2,"revision":5}').join("\n"))
      yield* soundUpTo(yield* at(directory), "run", 4)
    })
  )

  it.effect("lists and searches the other runs when one is damaged, is being removed, or has a copy", () =>
    Effect.gen(function* () {
      const { directory, journal, lines } = yield* stored
      yield* put(yield* at(directory), [Journal.begin("other").last(), Journal.begin("gone").last()])
      fs.copyFileSync(`${directory}/other.jsonl`, `${directory}/other.copy.jsonl`)
      fs.writeFileSync(
        journal,
        lines()
          .with(4, "x".repeat(lines()[4]?.length ?? 0))
          .join("\n")
      )
      fs.rmSync(`${directory}/gone.json`)
      const files = yield* FileSystem.FileSystem
      const watched: FileSystem.FileSystem = {
        ...files,
        open: (path, options) => {
          if (path === `${directory}/gone.jsonl`) fs.rmSync(path)
          return files.open(path, options)
        }
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, watched)
      const idsOf = (heads: ReadonlyArray<RunStore.RunHead>) => heads.map(({ runId }) => runId)
      assert.sameMembers(idsOf(yield* store.list()), ["run", "other"])
      assert.deepStrictEqual(idsOf(yield* store.list({ search: "fiber" })), ["other"])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("lists and searches the other runs when a file of one is unreadable, and logs it once", () => {
    const told: Array<string> = []
    const logger = Logger.make(({ message }) => void told.push(String(message)))
    return Effect.gen(function* () {
      const { directory } = yield* stored
      yield* put(yield* at(directory), [Journal.begin("headless").last(), Journal.begin("other").last()])
      const reasons: Record<string, string> = {
        [`${directory}/run.jsonl`]: "EIO: i/o error, open",
        [`${directory}/headless.json`]: "EACCES: permission denied, open"
      }
      fs.mkdirSync(`${directory}/folder.jsonl`)
      const files = refusing(yield* FileSystem.FileSystem, () => reasons)
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, files)
      const idsOf = (filter?: RunStore.RunFilter) =>
        Effect.map(store.list(filter), (heads) => heads.map(({ runId }) => runId))
      for (const _ of [1, 2]) {
        assert.sameMembers(yield* idsOf(), ["run", "headless", "other"])
        assert.sameMembers(yield* idsOf({ search: "fiber" }), ["headless", "other"])
      }
      assert.deepStrictEqual(
        told.map((line) => line.slice(0, line.indexOf(" is left out"))),
        ["run 'folder'", "run 'run'"]
      )
      // Without a head it is known by its journal alone.
      fs.rmSync(`${directory}/run.json`)
      const other = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, files)
      assert.sameMembers(
        (yield* other.list()).map(({ runId }) => runId),
        ["headless", "other"]
      )
    }).pipe(Effect.provide([NodeFileSystem.layer, Logger.layer([logger])]))
  })

  it.effect("fails instead of listing a part when no more files can be opened", () =>
    Effect.gen(function* () {
      const { directory } = yield* stored
      yield* put(yield* at(directory), [Journal.begin("other").last()])
      fs.rmSync(`${directory}/run.json`)
      const full = { [`${directory}/run.jsonl`]: "EMFILE: too many open files, open" }
      const files = refusing(yield* FileSystem.FileSystem, () => full)
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, files)
      assert.include((yield* Effect.flip(store.list())).message, "EMFILE")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("rejects a run of a newer format, leaves it unchanged, and lists the others (R-9)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      yield* put(yield* at(directory), [Journal.begin("other").last()])
      fs.appendFileSync(journal, '{"format":4,"revision":12,"shape":"unheard of"}\n{"format":2,"revision":13}\n')
      const before = fs.readFileSync(journal, "utf8")
      const store = yield* at(directory)
      const refusal = yield* Effect.flip(store.load("run"))
      assert.strictEqual(refusal.reason, "format")
      assert.match(refusal.message, /format 4 is newer than 3, .*; update kernai/)
      const later = [next(run), ...Journal.turn(run)]
      for (const { record, state } of later.slice(0, 3)) {
        const error = yield* Effect.flip(store.append([record], state))
        assert.strictEqual(error._tag === "StoreError" ? error.reason : error._tag, "format")
      }
      assert.strictEqual(fs.readFileSync(journal, "utf8"), before)
      assert.deepStrictEqual(
        (yield* store.list()).map(({ runId }) => runId),
        ["other"]
      )
    })
  )

  it.live("leaves a lease of a newer format unchanged, and does not retry for ever to acquire it (R-9)", () =>
    Effect.gen(function* () {
      const { directory } = yield* stored
      const held = '{"format":1,"n":1,"lease":{"workerId":"me","until":"tomorrow"}}\n'
      fs.writeFileSync(`${directory}/run.lease`, held)
      const store = yield* at(directory)
      const taken = yield* Effect.flip(
        Effect.timeout(store.acquire("run", { workerId: "me", lease: "1 minute" }), "2 seconds")
      )
      assert.strictEqual(taken._tag === "StoreError" ? taken.reason : taken._tag, "format")
      assert.strictEqual(fs.readFileSync(`${directory}/run.lease`, "utf8"), held)
    })
  )
})
