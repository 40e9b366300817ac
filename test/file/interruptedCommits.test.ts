import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Option, PlatformError, Stream } from "effect"
import * as fs from "node:fs"
import { FileRunStore } from "../../src/file/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { loads, put } from "../support/runStore.ts"
import { at, next, stored } from "../support/fileRuns.ts"

describe("FileRunStore, on disk", () => {
  it.effect("ignores a line that a crash truncated at any position, and appends after it (R-1)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const before = run.last()
      const text = fs.readFileSync(journal, "utf8")
      const head = fs.readFileSync(`${directory}/run.json`, "utf8")
      const commit = next(run)
      const line = JSON.stringify({ ...JSON.parse(text.split("\n")[10] ?? ""), revision: 12 })
      for (const end of [1, 20, line.length - 1]) {
        fs.writeFileSync(journal, text + line.slice(0, end))
        fs.writeFileSync(`${directory}/run.json`, head)
        const store = yield* at(directory)
        yield* loads(store, before)
        assert.strictEqual(Option.getOrThrow(yield* store.head("run")).revision, 11)
        yield* put(store, [commit])
        yield* loads(store, commit)
        yield* loads(yield* at(directory), commit)
        assert.lengthOf(yield* Stream.runCollect((yield* at(directory)).read("run")), 12)
      }
    })
  )

  it.effect("completes the commit of a process that died between claiming a revision and writing it", () =>
    Effect.gen(function* () {
      const { directory, journal, lines, run } = yield* stored
      const commit = next(run)
      yield* put(yield* at(directory), [commit])
      const last = lines().at(-2) ?? ""
      fs.writeFileSync(journal, lines().slice(0, -2).join("\n") + "\n")
      fs.writeFileSync(`${journal}.12.claim`, last)
      const store = yield* at(directory)
      yield* loads(store, commit)
      assert.isFalse(fs.existsSync(`${journal}.12.claim`))
      assert.strictEqual(lines().at(-2), last)
      // The same for one who would commit without looking first.
      fs.writeFileSync(journal, lines().slice(0, -2).join("\n") + "\n")
      fs.writeFileSync(`${journal}.12.claim`, last)
      const other = yield* at(directory)
      const error = yield* Effect.flip(other.append([{ ...commit.record, workerId: "worker-2" }], commit.state))
      assert.strictEqual(error._tag, "ConcurrentAppendError")
      yield* put(other, [commit])
      assert.strictEqual(lines().filter((line) => line === last).length, 1)
    })
  )

  it.effect("ignores a claim that a power cut left incomplete", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      for (const left of ["", '{"format":1,"revi', '{"format":1,"revision":7}']) {
        fs.writeFileSync(`${journal}.12.claim`, left)
        const store = yield* at(directory)
        yield* loads(store, run.last())
        // What it took for nothing is no record to it either.
        const { record, state } = run.last()
        const error = yield* Effect.flip(store.append([{ ...record, revision: 13 }], { ...state, revision: 13 }))
        assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actual, 11)
      }
      fs.writeFileSync(`${journal}.12.claim`, "")
      yield* put(yield* at(directory), [next(run)])
      yield* loads(yield* at(directory), run.last())
    })
  )

  it.effect("does not acknowledge a record in place of another one whose line lost only its end (R-1)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const head = fs.readFileSync(`${directory}/run.json`, "utf8")
      const commit = next(run)
      yield* put(yield* at(directory), [commit])
      fs.truncateSync(journal, fs.statSync(journal).size - 1)
      fs.writeFileSync(`${directory}/run.json`, head)
      const other = { ...commit.record, workerId: "worker-2" }
      const error = yield* Effect.flip((yield* at(directory)).append([other], commit.state))
      assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actual, 12)
      yield* put(yield* at(directory), [commit])
      const records = yield* Stream.runCollect((yield* at(directory)).read("run"))
      assert.deepStrictEqual(records.at(-1), commit.record)
    })
  )

  it.effect("syncs the file before it acknowledges a repeated record (R-1, R-6)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const files = yield* FileSystem.FileSystem
      let asked = 0
      const broken = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "sync" })
      const failing: FileSystem.FileSystem = {
        ...files,
        open: (path, options) =>
          Effect.map(files.open(path, options), (file) => {
            const { sync } = file
            const twice = Effect.suspend(() => (path === journal && ++asked < 3 ? Effect.fail(broken) : sync))
            return Object.defineProperty(file, "sync", { value: twice })
          })
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, failing)
      const { record, state } = next(run)
      for (const _ of [1, 2]) assert.strictEqual((yield* Effect.flip(store.append([record], state)))._tag, "StoreError")
      yield* store.append([record], state)
      assert.strictEqual(asked, 3)
      assert.deepStrictEqual(fs.readdirSync(directory).toSorted(), ["run.json", "run.jsonl"])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("leaves no part of a record it could not write, so a retry does not store it twice (R-6)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const files = yield* FileSystem.FileSystem
      let isFull = true
      const full = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "write" })
      const failing: FileSystem.FileSystem = {
        ...files,
        open: (path, options) => (isFull && options?.flag === "a" ? Effect.fail(full) : files.open(path, options))
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, failing)
      const [before, first, said] = [run.last(), Journal.begin("other").last(), next(run)]
      assert.strictEqual((yield* Effect.flip(store.append([said.record], said.state)))._tag, "StoreError")
      assert.strictEqual((yield* Effect.flip(store.append([first.record], first.state)))._tag, "StoreError")
      const claim = { workerId: "one", lease: "1 minute" } as const
      assert.strictEqual((yield* Effect.flip(store.acquire("run", claim)))._tag, "StoreError")
      isFull = false
      yield* loads(store, before)
      assert.isTrue(Option.isNone(yield* store.load("other")))
      assert.isUndefined(Option.getOrThrow(yield* store.head("run")).lease)
      assert.deepStrictEqual(fs.readdirSync(directory).toSorted(), ["clock", "run.json", "run.jsonl"])
      const other = { ...said.record, workerId: "worker-2" }
      yield* store.append([other], said.state)
      assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).at(-1), other)
      assert.isFalse(fs.existsSync(`${journal}.12.claim`))
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("writes no record to a run that is removed during the commit (R-5)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const files = yield* FileSystem.FileSystem
      const other = yield* at(directory)
      const overtaken: FileSystem.FileSystem = {
        ...files,
        link: (from, to) =>
          Effect.tap(files.link(from, to), () => {
            assert.strictEqual(fs.statSync(to).mode & 0o777, 0o600)
            return Effect.ignore(other.remove(["run"]))
          })
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, overtaken)
      const { record, state } = next(run)
      const error = yield* Effect.flip(store.append([record], state))
      assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actual, 0)
      assert.isFalse(fs.existsSync(journal))
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("ignores a worker that writes an old record again (R-5)", () =>
    Effect.gen(function* () {
      const { directory, journal, lines, run } = yield* stored
      const head = fs.readFileSync(`${directory}/run.json`, "utf8")
      const late = lines()[4]
      yield* put(yield* at(directory), [next(run)])
      fs.appendFileSync(journal, `${late}\n`)
      fs.writeFileSync(`${directory}/run.json`, head)
      const store = yield* at(directory)
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).revision, 12)
      yield* loads(store, run.last())
      const stale = fs.statSync(journal).size
      yield* put(store, [run.commit("phase", [{ type: "model_started", attempt: 1 }])])
      assert.isAbove(fs.statSync(journal).size, stale)
      yield* loads(yield* at(directory), run.last())
    })
  )

  for (const kept of ["the number", "the time of birth"]) {
    it.effect(
      `detects that a run was removed and started again although its file has ${kept} of the old one (R-5)`,
      () =>
        Effect.gen(function* () {
          const { directory, run } = yield* stored
          const files = yield* FileSystem.FileSystem
          let births = 0
          const reusing: FileSystem.FileSystem = {
            ...files,
            stat: (path) =>
              Effect.map(files.stat(path), (info) => ({
                ...info,
                ino: Option.some(BigInt(kept === "the number" ? 1 : births)),
                birthtime: Option.some(new Date(kept === "the number" ? births : 1))
              }))
          }
          const one = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, reusing)
          const two = yield* at(directory)
          yield* loads(one, run.last())
          yield* two.remove(["run"])
          births++
          const anew = Journal.begin("run", { input: "again ".repeat(2_000) })
          yield* put(two, [anew.last(), ...Journal.turn(anew).slice(0, 4)])
          const late = next(run)
          const error = yield* Effect.flip(one.append([late.record], late.state))
          assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actual, 5)
        }).pipe(Effect.provide(NodeFileSystem.layer))
    )
  }

  it.effect("removes the journal of a run last, so an interrupted removal leaves a run", () =>
    Effect.gen(function* () {
      const { directory } = yield* stored
      const files = yield* FileSystem.FileSystem
      const removed: Array<string> = []
      const watched: FileSystem.FileSystem = {
        ...files,
        remove: (path, options) => {
          removed.push(path.slice(directory.length + 1))
          return files.remove(path, options)
        }
      }
      fs.writeFileSync(`${directory}/run.parts`, "")
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, watched)
      yield* store.remove(["run"])
      assert.sameMembers(removed, ["run.json", "run.jsonl", "run.parts"])
      assert.strictEqual(removed.at(-1), "run.jsonl")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )
})
