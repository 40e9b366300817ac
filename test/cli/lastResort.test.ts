import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { pathToFileURL } from "node:url"

const main = (millis: number) => `
  import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
  import { Effect } from "effect"
  import { endAfterSigterm } from ${JSON.stringify(pathToFileURL("src/cli/lastResort.ts").href)}
  endAfterSigterm(${millis})
  const started = Effect.sync(() => process.stdout.write("started"))
  NodeRuntime.runMain(Effect.uninterruptible(Effect.andThen(started, Effect.never)))
`

/** Starts a process that cannot be interrupted, and sends it SIGTERM. Returns its exit code, if it ends in time. */
const ended = (millis: number, patience: number) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--input-type=module", "--eval", main(millis)], {
          stdio: ["ignore", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    yield* Effect.promise(() => once(child.stdout, "data"))
    const exit = once(child, "exit")
    child.kill("SIGTERM")
    return yield* Effect.promise(async (): Promise<unknown> => {
      const [code] = await Promise.race([
        exit,
        new Promise<[string]>((done) => setTimeout(done, patience, ["runs on"]))
      ])
      return code
    })
  }).pipe(Effect.scoped)

describe("SIGTERM", () => {
  it.live(
    "ends a process that does not stop, after the time it has for it",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* ended(60_000, 1_000), "runs on")
        assert.strictEqual(yield* ended(200, 20_000), 143)
      }),
    60_000
  )
})
