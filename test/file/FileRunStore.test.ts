import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { ByteSize, Effect, Exit, FileSystem, Layer, Logger, Option, PlatformError, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { RunStore } from "kernai"
import * as fs from "node:fs"
import { FileRunStore } from "../../src/file/index.ts"
import * as Name from "../../src/file/internal/fileName.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import * as LongRun from "../support/longRun.ts"
import { endsWithLayer, loads, open, put, race, resume, soundUpTo, suite } from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const at = (directory: string) =>
  open(FileRunStore.layer(directory, { pollInterval: "20 millis" }).pipe(Layer.provide(NodeFileSystem.layer)))

describe("FileRunStore", () => {
  const directory = Effect.runSync(Scope.provide(folder, scope))
  // A journal of many megabytes takes a second in files: `npm test` writes it on SQLite only.
  suite(at(directory), LongRun.isLong ? [] : ["gives the state of a long run whose conversation was compacted"])

  it("keeps no file of a removed run", () => {
    assert.sameMembers(fs.readdirSync(directory), [".offers", "clock"])
    assert.deepStrictEqual(fs.readdirSync(`${directory}/.offers`), [])
  })

  it.effect("keeps only the files of its runs and its clock in the folder", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const [one, two] = [yield* at(directory), yield* at(directory)]
      const run = Journal.begin("run")
      yield* put(one, [run.last(), ...Journal.turn(run, { text: "much ".repeat(220_000) })])
      yield* one.acquire("run", { workerId: "a", lease: "1 minute" })
      yield* put(two, Journal.turn(run, { text: "much ".repeat(220_000) }))
      yield* Effect.flip(two.acquire("run", { workerId: "b", lease: "1 minute" }))
      assert.sameMembers(fs.readdirSync(directory), ["clock", "run.json", "run.jsonl", "run.lease", "run.parts"])
    })
  )
})

describe("FileRunStore, on disk", () => {
  it.effect.skipIf(!fs.existsSync("/dev/full"))("reports a full disk (F2)", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const full = FileSystem.FileSystem.of({
        ...files,
        writeFileString: (_, data) => files.writeFileString("/dev/full", data)
      })
      const store = yield* Effect.provideService(FileRunStore.make(yield* folder), FileSystem.FileSystem, full)
      const { record, state } = Journal.begin("run").last()
      assert.include((yield* Effect.flip(store.append([record], state))).message, "ENOSPC: no space left on device")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("syncs the file at every commit, and the folder for a new run (R-1)", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const synced: Array<string> = []
      const watched: FileSystem.FileSystem = {
        ...files,
        open: (path, options) =>
          Effect.map(files.open(path, options), (file) => {
            const sync = Effect.tap(file.sync, () => Effect.sync(() => synced.push(path)))
            return Object.defineProperty(file, "sync", { value: sync })
          })
      }
      const directory = yield* folder
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, watched)
      const run = Journal.begin("run")
      yield* put(store, [run.last()])
      const journal = `${directory}/run.jsonl`
      assert.deepStrictEqual(synced, [journal, `${directory}/`])
      yield* put(store, Journal.turn(run).slice(0, 3))
      assert.deepStrictEqual(synced.slice(2), [journal, journal, journal])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  /** A folder with a run of one turn; `journal` is the path of its file. */
  const stored = Effect.gen(function* () {
    const directory = yield* folder
    const run = Journal.begin("run")
    yield* put(yield* at(directory), [run.last(), ...Journal.turn(run)])
    const journal = `${directory}/run.jsonl`
    const lines = () => fs.readFileSync(journal, "utf8").split("\n")
    return { directory, journal, lines, run, turnId: "run:t2" }
  })
  const next = (run: Journal.Writer) => run.commit("phase", [{ type: "turn_started", turnId: "run:t2" }])

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

  it.effect("stores a line of JSON for each record and a head, for their owner only (DR-28)", () =>
    Effect.gen(function* () {
      const { directory, lines, run } = yield* stored
      assert.deepStrictEqual(fs.readdirSync(directory).toSorted(), ["run.json", "run.jsonl"])
      const revisions = lines()
        .slice(0, -1)
        .map((line) => JSON.parse(line).revision)
      assert.deepStrictEqual(
        revisions,
        Array.from({ length: 11 }, (_, index) => index + 1)
      )
      const head = JSON.parse(fs.readFileSync(`${directory}/run.json`, "utf8"))
      assert.strictEqual(head.revision, 11)
      assert.deepStrictEqual(head.status, run.last().state.status)
      for (const file of fs.readdirSync(directory)) {
        assert.strictEqual(fs.statSync(`${directory}/${file}`).mode & 0o777, 0o600)
      }
      assert.strictEqual(fs.statSync(yield* Effect.as(at(`${directory}/a/b`), `${directory}/a/b`)).mode & 0o777, 0o700)
    })
  )

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
        assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actualSeq, 11)
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
      assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actualSeq, 12)
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
      assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actualSeq, 0)
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
          assert.deepStrictEqual(error._tag === "ConcurrentAppendError" && error.actualSeq, 5)
        }).pipe(Effect.provide(NodeFileSystem.layer))
    )
  }

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

  it.effect("rebuilds a head that is missing, outdated or damaged", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* stored
      const file = `${directory}/run.json`
      const head = fs.readFileSync(file, "utf8")
      const broken = ["", "{}", "null", head.replace('"bytes": ', '"bytes": 1'), head.replace('"agent"', '"agend"')]
      broken.push(JSON.stringify({ ...JSON.parse(head), status: { type: "unheard of" } }))
      for (const text of [undefined, ...broken]) {
        if (text === undefined) fs.rmSync(file)
        else fs.writeFileSync(file, text)
        const store = yield* at(directory)
        const [found] = yield* store.list()
        assert.deepStrictEqual([found?.revision, found?.status], [11, run.last().state.status])
        assert.strictEqual(fs.readFileSync(file, "utf8"), head)
      }
    })
  )

  it.effect("reads runs in a read-only folder, with or without their heads", () =>
    Effect.gen(function* () {
      const { directory } = yield* stored
      fs.rmSync(`${directory}/run.json`)
      const denied = { _tag: "PermissionDenied", module: "FileSystem", method: "writeFile" } as const
      const readOnly: FileSystem.FileSystem = {
        ...(yield* FileSystem.FileSystem),
        writeFileString: () => Effect.fail(PlatformError.systemError(denied))
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, readOnly)
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).revision, 11)
      assert.lengthOf(yield* store.list(), 1)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("reports a commit of this process at once, and those of others at the poll interval", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* stored
      const patient = FileRunStore.layer(directory, { pollInterval: "1 minute" })
      const store = yield* open(Layer.provide(patient, NodeFileSystem.layer))
      const seen: Array<number> = []
      const following = Stream.runForEach(store.tail("run", 10), ({ revision }) =>
        Effect.sync(() => seen.push(revision))
      )
      yield* Effect.forkScoped(following)
      const moment = Effect.promise(() => new Promise((done) => setTimeout(done, 5)))
      const until = (revision: number, waiting: Effect.Effect<void>) =>
        Effect.whileLoop({ while: () => seen.at(-1) !== revision, body: () => waiting, step: () => {} })
      yield* until(11, moment)
      yield* put(store, [next(run)])
      yield* until(12, moment)
      // It looks once more before it waits.
      yield* Effect.repeat(moment, { times: 30 })
      yield* put(yield* at(directory), [run.commit("phase", [{ type: "model_started", attempt: 1 }])])
      yield* moment
      yield* TestClock.adjust("30 seconds")
      yield* Effect.andThen(moment, moment)
      assert.deepStrictEqual(seen, [11, 12])
      yield* until(13, Effect.andThen(TestClock.adjust("30 seconds"), moment))
      assert.deepStrictEqual(seen, [11, 12, 13])
    })
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

  /** A store that tells how many bytes of journals it read so far. */
  const counted = Effect.fnUntraced(function* (directory: string) {
    const files = yield* FileSystem.FileSystem
    let bytes = 0
    const counting: FileSystem.FileSystem = {
      ...files,
      open: (path, options) =>
        Effect.map(files.open(path, options), (file) => {
          const read: FileSystem.File["read"] = (buffer, options) =>
            Effect.tap(file.read(buffer, options), (count) =>
              Effect.sync(() => (bytes += path.endsWith(".jsonl") ? count : 0))
            )
          return Object.defineProperty(Object.create(file), "read", { value: read })
        })
    }
    const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, counting)
    return { store, bytes: () => bytes }
  })
  const long = { text: "much ".repeat(220_000) }

  it.effect("reads only the part of a journal after the stored state (DR-5)", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const run = Journal.begin("run")
      yield* put(yield* at(directory), [run.last(), ...Journal.turn(run, long)])
      const { bytes, store } = yield* counted(directory)
      yield* loads(store, run.last())
      assert.strictEqual(bytes(), 0)
      yield* put(yield* at(directory), [next(run)])
      yield* loads(store, run.last())
      assert.isBelow(bytes(), 10_000)
      // And all of it, lines longer than a page too, where there are none.
      fs.rmSync(`${directory}/run.parts`)
      yield* loads(store, run.last())
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("extends the parts of a loaded state, and starts over when they are damaged (DR-5)", () =>
    Effect.gen(function* () {
      for (const broken of [undefined, "nothing\n"]) {
        const directory = yield* folder
        const run = Journal.begin("run")
        yield* put(yield* at(directory), [run.last(), ...Journal.turn(run, long)])
        if (broken !== undefined) fs.writeFileSync(`${directory}/run.parts`, broken)
        yield* resume(yield* at(directory), "run", Journal.turn(run, long))
        const { bytes, store } = yield* counted(directory)
        yield* loads(store, run.last())
        assert.strictEqual(bytes(), 0)
      }
    }).pipe(Effect.provide(NodeFileSystem.layer))
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

  /** A file system on which some paths cannot be opened, for a reason that Node tells so. */
  const refusing = (
    files: FileSystem.FileSystem,
    why: () => Readonly<Record<string, string>>
  ): FileSystem.FileSystem => {
    const unless = <A, R>(path: string, opened: Effect.Effect<A, PlatformError.PlatformError, R>) =>
      Effect.suspend(() => {
        const reason = why()[path]
        const method = { _tag: "Unknown", module: "FileSystem", method: "open" } as const
        return reason === undefined
          ? opened
          : Effect.fail(PlatformError.systemError({ ...method, cause: new Error(reason) }))
      })
    return {
      ...files,
      open: (path, options) => unless(path, files.open(path, options)),
      readFileString: (path, encoding) => unless(path, files.readFileString(path, encoding))
    }
  }

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

  it.live("reads nothing in an unchanged folder, and only the changes in a changed one", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* stored
      const elsewhere = yield* at(directory)
      yield* put(elsewhere, [Journal.begin("other").last(), Journal.begin("bad").last()])
      fs.rmSync(`${directory}/bad.json`)
      const reasons: Record<string, string> = { [`${directory}/bad.jsonl`]: "EIO: i/o error, open" }
      const files = refusing(yield* FileSystem.FileSystem, () => reasons)
      let asked: Array<string> = []
      const note = (path: string) => void asked.push(path.slice(directory.length))
      const watched: FileSystem.FileSystem = {
        ...files,
        stat: (path) =>
          Effect.andThen(
            Effect.sync(() => note(path)),
            files.stat(path)
          ),
        open: (path, options) =>
          Effect.andThen(
            Effect.sync(() => note(path)),
            files.open(path, options)
          )
      }
      const store = yield* Effect.provideService(FileRunStore.make(directory), FileSystem.FileSystem, watched)
      const look = Effect.gen(function* () {
        asked = []
        const heads = yield* store.list({ order: "oldest" })
        return heads.map(({ lease, revision, runId }) => [runId, revision, lease?.workerId])
      })
      // Changed just now, it may change once more at the same time.
      fs.utimesSync(directory, Date.now() / 1_000, Date.now() / 1_000 + 60)
      for (const _ of [1, 2]) {
        assert.sameDeepMembers(yield* look, [
          ["run", 11, undefined],
          ["other", 1, undefined]
        ])
        assert.includeMembers(asked, ["", "/run.jsonl", "/other.jsonl"])
      }
      const longAgo = () => fs.utimesSync(directory, 1_000_000_000, 1_000_000_000 + fs.readdirSync(directory).length)
      longAgo()
      yield* look
      assert.notInclude(asked, "/run.json")
      yield* look
      assert.deepStrictEqual(
        asked.filter((path) => !path.startsWith("/bad.")),
        [""]
      )
      yield* put(elsewhere, [next(run)])
      yield* elsewhere.acquire("other", { workerId: "one", lease: "1 minute" })
      assert.sameDeepMembers(yield* look, [
        ["run", 12, undefined],
        ["other", 1, "one"]
      ])
      assert.include(asked, "/run.json")
      assert.notInclude(asked, "/other.json")
      longAgo()
      yield* look
      delete reasons[`${directory}/bad.jsonl`]
      assert.sameDeepMembers(yield* look, [
        ["run", 12, undefined],
        ["other", 1, "one"],
        ["bad", 1, undefined]
      ])
      yield* elsewhere.remove(["other"])
      yield* elsewhere.release("other", "one")
      assert.sameDeepMembers(yield* look, [
        ["run", 12, undefined],
        ["bad", 1, undefined]
      ])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("rejects a run of a newer format, leaves it unchanged, and lists the others (R-9)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      yield* put(yield* at(directory), [Journal.begin("other").last()])
      fs.appendFileSync(journal, '{"format":3,"revision":12,"shape":"unheard of"}\n{"format":2,"revision":13}\n')
      const before = fs.readFileSync(journal, "utf8")
      const store = yield* at(directory)
      const refusal = yield* Effect.flip(store.load("run"))
      assert.strictEqual(refusal.reason, "format")
      assert.match(refusal.message, /format 3 is newer than 2, .*; update kernai/)
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

  it.effect("reads only the end of a lease file that was renewed for days", () =>
    Effect.gen(function* () {
      const { directory } = yield* stored
      const lineOf = (n: number) => JSON.stringify({ n, lease: { workerId: "one", expiresAt: n < 200_000 ? n : 9e15 } })
      // One of its workers was stopped while it renewed, and repeats that line in the end.
      const lines = [...Array.from({ length: 200_000 }, (_, index) => lineOf(index + 1)), lineOf(199_000), ""]
      fs.writeFileSync(`${directory}/run.lease`, lines.join("\n"))
      let opened = 0
      const counting = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (files) => ({
          ...files,
          open: (path: string, options?: Parameters<typeof files.open>[1]) => {
            if (path.endsWith(".lease")) opened++
            return files.open(path, options)
          }
        }))
      ).pipe(Layer.provide(NodeFileSystem.layer))
      const store = yield* open(FileRunStore.layer(directory).pipe(Layer.provide(counting)))
      const claim = { workerId: "two", lease: "1 minute" } as const
      const busy = yield* Effect.flip(store.acquire("run", claim))
      assert.strictEqual(busy._tag === "RunBusy" ? busy.expiresAt : busy._tag, 9e15)
      yield* store.release("run", "one")
      yield* store.acquire("run", claim)
      const { lease } = Option.getOrThrow(yield* store.head("run"))
      assert.deepStrictEqual([lease?.workerId, lease?.isLive], ["two", true])
      // A file that is read from its beginning is opened for each megabyte of it.
      assert.isBelow(opened, 20)
      yield* store.release("run", "two")
      assert.isUndefined(Option.getOrThrow(yield* store.head("run")).lease)
      assert.include(fs.readFileSync(`${directory}/run.lease`, "utf8"), '\n{"n":200002,')
    })
  )

  it.effect("gives each run a file name that is unique on case-insensitive disks and no device name (S-16)", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const store = yield* at(directory)
      const ids = ["aux", "con", "nul", "prn", "com1", "lpt9"]
      const others = ["console", "%0063on", "RUN", "run", "..", ".", "", "/", "a/b", "a\0b", "a.b", "x".repeat(5_000)]
      for (const id of [...ids, ...others]) yield* put(store, [Journal.begin(id).last()])
      const names = fs.readdirSync(directory).map((file) => file.slice(0, file.indexOf(".")))
      for (const id of ids) assert.notInclude(names, id)
      for (const name of names) assert.match(name, /^[a-z0-9_%-]{1,128}$/)
      assert.strictEqual(new Set(names).size, ids.length + others.length)
      assert.includeMembers(names, ["console", "%0063on", "%00250063on"])
      const found = (yield* store.list()).map(({ runId }) => runId)
      assert.sameMembers(found, [...ids, ...others])
    })
  )

  it("caches the thousand runs used last, and no more", () => {
    const made: Array<string> = []
    const known = Name.cache((name) => made.push(name))
    for (let run = 0; run < 1_000; run++) known(`${run}`)
    for (const name of ["0", "1000", "0", "2", "1"]) known(name)
    assert.deepStrictEqual(made.slice(1_000), ["1000", "1"])
  })

  it.effect("fails with a typed error when there is no space (F2)", () =>
    Effect.gen(function* () {
      const { directory, journal, run } = yield* stored
      const unopened = yield* Effect.flip(at(journal))
      assert.deepStrictEqual([unopened._tag, unopened.reason], ["StoreError", "unavailable"])
      const store = yield* at(directory)
      fs.rmSync(directory, { recursive: true })
      const commit = next(run)
      const error = yield* Effect.flip(store.append([commit.record], commit.state))
      assert.include(["StoreError", "ConcurrentAppendError"], error._tag)
      assert.strictEqual((yield* Effect.flip(store.list())).reason, "unavailable")
    })
  )

  it.effect("fails every operation with a typed error when its folder is gone (F2)", () =>
    Effect.gen(function* () {
      const { directory, run } = yield* stored
      const store = yield* at(directory)
      const { record, state } = next(run)
      const first = Journal.begin("other").last()
      fs.rmSync(directory, { recursive: true })
      fs.writeFileSync(directory, "")
      const asked: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        store.append([first.record], first.state),
        store.append([record], state),
        store.load("run"),
        store.head("run"),
        Stream.runDrain(store.read("run")),
        store.list(),
        store.acquire("run", { workerId: "one", lease: "1 minute" }),
        store.release("run", "one"),
        store.remove(["run"])
      ]
      for (const effect of asked) {
        const error = yield* Effect.flip(effect)
        assert.isTrue(error instanceof RunStore.StoreError && error.reason === "unavailable")
      }
    })
  )

  it.live("ends subscriptions with its layer", () =>
    Effect.gen(function* () {
      const layer = FileRunStore.layer(yield* folder, { pollInterval: "1 hour" })
      yield* endsWithLayer(layer.pipe(Layer.provide(NodeFileSystem.layer)))
    })
  )

  // `npm test` has two processes race on SQLite, and here two stores of one process.
  if (LongRun.isLong) it.effect("gives each revision to one of two processes (R-5)", () => race("file"), 30_000)
})
