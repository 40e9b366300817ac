import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FileSystem, Layer, Option, PlatformError, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { RunStore } from "kernai"
import * as fs from "node:fs"
import { FileRunStore } from "../../src/file/index.ts"
import * as Name from "../../src/file/internal/fileName.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import * as LongRun from "../support/longRun.ts"
import { endsWithLayer, loads, open, put, race, resume, suite } from "../support/runStore.ts"
import { at, next, refusing, stored } from "../support/fileRuns.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

describe("FileRunStore", () => {
  const directory = Effect.runSync(Scope.provide(folder, scope))
  // A journal of many megabytes takes a second in files: `npm test` writes it on SQLite only.
  suite(at(directory), LongRun.isLong ? [] : ["gives the state of a long run whose conversation was compacted"])

  it("keeps no file of a removed run", () => {
    assert.sameMembers(fs.readdirSync(directory), [".histories", ".notes", ".offers", "clock"])
    assert.deepStrictEqual(fs.readdirSync(`${directory}/.notes`), [])
    assert.deepStrictEqual(fs.readdirSync(`${directory}/.offers`), [])
    assert.deepStrictEqual(fs.readdirSync(`${directory}/.histories`), [])
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
