/** The figure of uploads: the memory of a server that receives 64 media of 16 MiB at once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { request } from "node:http"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { folder } from "../support/folder.ts"
import { times } from "../support/longRun.ts"

const piece = Buffer.alloc(1024 * 1024, 7)
const pieces = 16

/** Starts the server of uploads. Returns its port, and a function that ends it and returns its last line. */
const server = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const file = fileURLToPath(new URL("../support/uploadServer.ts", import.meta.url))
      const child = spawn(process.execPath, ["--conditions=kernai-source", file, path], {
        stdio: ["pipe", "pipe", "inherit"]
      })
      return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
    }),
    ({ child }) => Effect.sync(() => child.kill())
  )

/** Uploads a medium piece by piece, as fast as the server reads it. Returns the status. */
const upload = (port: number, number: number) =>
  Effect.callback<number>((resume) => {
    const sent = request({
      port,
      host: "127.0.0.1",
      method: "POST",
      path: `/runs/r${number}/media`,
      agent: false,
      headers: {
        authorization: `Bearer caller${number % 16}`,
        "content-type": "application/octet-stream",
        "content-length": pieces * piece.length
      }
    })
    sent.on("response", (response) => {
      response.resume()
      resume(Effect.succeed(response.statusCode ?? 0))
    })
    sent.on("error", () => resume(Effect.succeed(0)))
    // No two media are the same.
    sent.write(Buffer.concat([Buffer.from(`${number}`.padStart(8, "0")), piece.subarray(8)]))
    let left = pieces - 1
    const more = () => {
      for (; left > 0; left--) {
        if (sent.write(piece)) continue
        left--
        sent.once("drain", more)
        return
      }
      sent.end()
    }
    more()
  })

describe("a server whose media are in SQLite", () => {
  it.live("receives media of 16 MiB from 16 callers at once with less than 100 MiB of heap", () =>
    Effect.gen(function* () {
      const { child, lines } = yield* server(yield* folder)
      const line = Effect.promise(() => lines.next())
      const port = Number((yield* line).value)
      const count = times(64, 16)
      const numbers = Array.from({ length: count }, (_, number) => number)
      const statuses = yield* Effect.forEach(numbers, (number) => upload(port, number), { concurrency: count })
      assert.deepStrictEqual(new Set(statuses), new Set([200]))
      child.stdin.end()
      const most = JSON.parse((yield* line).value ?? "")
      console.log(
        `uploads: ${count} of 16 MiB, heap ${Math.round(most.heap)} MiB, buffers ${Math.round(most.buffers)} MiB`
      )
      assert.isBelow(most.heap, 100)
      // What is received at once, copied once, and what the collector has not freed yet; all media are 1,024 MiB.
      if (count === 64) assert.isBelow(most.buffers, 400)
    }).pipe(Effect.scoped)
  )
})
