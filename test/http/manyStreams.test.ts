/** The figures of many streams: what a server does while they are idle, when they leave at once, and when it closes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { connect, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { times } from "../support/longRun.ts"

const followers = times(2_000, 400)
const leaving = times(600, 120)

/** Starts the server of streams. */
const server = Effect.acquireRelease(
  Effect.sync(() => {
    const file = fileURLToPath(new URL("../support/streamServer.ts", import.meta.url))
    const child = spawn(process.execPath, ["--conditions=kernai-source", file], { stdio: ["pipe", "pipe", "inherit"] })
    return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
  }),
  ({ child }) => Effect.sync(() => child.kill())
)

/** A follower, and all that it has received. */
interface Follower {
  readonly socket: Socket
  text: string
}

const follow = (port: number) =>
  Effect.callback<Follower>((resume) => {
    const socket = connect(port, "127.0.0.1")
    const follower: Follower = { socket, text: "" }
    socket.on("error", () => undefined)
    socket.on("data", (data) => {
      follower.text += data.toString()
      resume(Effect.succeed(follower))
    })
    socket.write("GET /runs/r/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
  })

describe("a server with thousands of streams", () => {
  it.live("never works longer than 100 ms at once, closes within 10 s, and tells its streams to connect again", () =>
    Effect.gen(function* () {
      const { child, lines } = yield* server
      const line = Effect.promise(async () => (await lines.next()).value ?? "")
      const port = Number(yield* line)
      const longest = Effect.suspend(() => {
        child.stdin.write("\n")
        return Effect.map(line, Number)
      })
      const url = `http://127.0.0.1:${port}`
      const health = Effect.promise(async () => (await fetch(`${url}/health`)).status)
      const body = JSON.stringify({ input: "Go.", runId: "r" })
      const headers = { "content-type": "application/json" }
      yield* Effect.promise(() => fetch(`${url}/runs`, { method: "POST", headers, body }))
      const all = yield* Effect.forEach(Array.from({ length: followers }), () => follow(port), { concurrency: 50 })
      yield* longest
      yield* Effect.sleep("500 millis")
      const idle = yield* longest
      let left = Infinity
      for (let batch = 0; batch < 3; batch++) {
        for (const { socket } of all.splice(0, leaving)) socket.destroy()
        assert.strictEqual(yield* health, 200)
        yield* Effect.sleep("500 millis")
        left = Math.min(left, yield* longest)
      }
      assert.isBelow(idle, 100)
      assert.isBelow(left, 100)
      // Some read nothing any more.
      const [silent, reading] = [all.slice(0, 50), all.slice(50)]
      for (const { socket } of silent) socket.pause()
      for (const follower of reading) follower.text = ""
      const before = performance.now()
      child.stdin.end()
      yield* Effect.promise(() => new Promise((resolve) => child.once("exit", resolve)))
      const seconds = (performance.now() - before) / 1_000
      for (const { text } of reading) assert.include(text, "connect again")
      console.log(
        `streams: ${followers}, idle ${idle.toFixed(0)} ms, ${leaving} leave ${left.toFixed(0)} ms, closed in ${seconds.toFixed(1)} s`
      )
      assert.isBelow(seconds, 10)
    }).pipe(Effect.scoped)
  )
})
