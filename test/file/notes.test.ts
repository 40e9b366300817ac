/** Announcements of notes in a directory. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, PlatformError, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as FileNotes from "../../src/file/internal/fileNotes.ts"

const nextOf = (watch: FileSystem.FileSystem["watch"]) =>
  FileNotes.make(FileSystem.makeNoop({ watch }), "runs").changes?.next ?? Effect.die("notes announce no changes")

describe("notes in files", () => {
  it.effect("are announced once they are in place, and not while they are written", () =>
    Effect.gen(function* () {
      const events = yield* Queue.make<FileSystem.WatchEvent>()
      const next = nextOf(() => Stream.fromQueue(events))
      const changed = yield* Effect.forkChild(next, { startImmediately: true })
      yield* Queue.offer(events, { _tag: "Create", path: "drain.json.5f1c.tmp" })
      yield* TestClock.adjust("1 second")
      assert.isUndefined(changed.pollUnsafe())
      yield* Queue.offer(events, { _tag: "Create", path: "drain.json" })
      yield* Fiber.join(changed)
    })
  )

  it.effect("are read again within the three seconds of a roll call where the folder cannot be watched", () =>
    Effect.gen(function* () {
      const error = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "watch" })
      const changed = yield* Effect.forkChild(
        nextOf(() => Stream.fail(error)),
        { startImmediately: true }
      )
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(changed)
    })
  )
})
