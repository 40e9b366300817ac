import { assert, describe, layer } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Result, Sink } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { Limits } from "kernai"
import type { McpConnection } from "kernai/mcp"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Support from "../support/mcp/connect.ts"

class Hostile extends Context.Service<Hostile, McpConnection.McpConnection>()("test/Hostile") {
  static readonly layer = Layer.effect(
    Hostile,
    Effect.orDie(Support.hostile("pages", "", { env: { SECRET: "sk-SECRET-0123456789" }, timeout: "20 seconds" }))
  )
}

const say = (connection: McpConnection.McpConnection, text: string) =>
  Effect.map(connection.callTool("say", { text }), Support.textOf)

/** A spawner of processes whose input is watched, message by message. */
const watched = (
  spawner: ChildProcessSpawner.ChildProcessSpawner["Service"],
  onMessage: (message: string) => void
): ChildProcessSpawner.ChildProcessSpawner["Service"] =>
  ChildProcessSpawner.make((command) =>
    Effect.map(spawner.spawn(command), (handle) =>
      ChildProcessSpawner.makeHandle({
        ...handle,
        stdin: Sink.mapInput(handle.stdin, (chunk: Uint8Array) => {
          onMessage(new TextDecoder().decode(chunk))
          return chunk
        })
      })
    )
  )

// Servers that do not end by themselves are given less time than usual.
const limits = Limits.layer({ cleanUpTimeout: 400 })

layer(Layer.provideMerge(Hostile.layer, Layer.merge(Support.platform, limits)), {
  excludeTestServices: true,
  timeout: "20 seconds"
})("a misbehaving server", (it) => {
  it.effect("cannot answer another request, answer twice or answer early (S-18, R-24)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      assert.strictEqual(Support.textOf(yield* connection.callTool("foreign", {})), "mine")
      assert.strictEqual(yield* say(connection, "next"), "next")
      const early = yield* Support.hostile("early")
      assert.strictEqual(yield* say(early, "asked"), "asked")
    })
  )

  it.effect("gets no sampling, and a request with a call's id does not answer the call (S-18)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      assert.deepStrictEqual(JSON.parse(Support.textOf(yield* connection.callTool("sampling", {}))), {
        code: -32601,
        message: "Method not found: sampling/createMessage"
      })
      assert.strictEqual(Support.textOf(yield* connection.callTool("clash", {})), "mine")
    })
  )

  it.effect("may print other text, send batches and split messages anywhere", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      assert.strictEqual(Support.textOf(yield* connection.callTool("chatter", {})), "still here")
      assert.strictEqual(Support.textOf(yield* connection.callTool("batch", {})), "one of two")
      assert.strictEqual(Support.textOf(yield* connection.callTool("cut", {})), "é世界")
    })
  )

  it.effect("may print logs that look like messages, including lists, objects and ids", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      assert.strictEqual(Support.textOf(yield* connection.callTool("log", {})), "logged")
    })
  )

  it.effect("may write null for parameters it leaves out", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      assert.strictEqual(Support.textOf(yield* connection.callTool("paramless", {})), "nothing to tell")
    })
  )

  it.effect("cannot fill memory with notifications", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      yield* connection.awaitChanges
      assert.strictEqual(Support.textOf(yield* connection.callTool("flood", {})), "flooded")
      assert.deepStrictEqual([...(yield* connection.awaitChanges)], ["tools"])
    })
  )

  it.effect("is read as far as it can be when its result has an unknown type (S-18)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const weird = yield* connection.callTool("weird", {})
      assert.strictEqual(Support.textOf(weird), "[non-text content omitted: type=hologram]")
      assert.deepStrictEqual((yield* connection.callTool("empty", {})).content, [])
      assert.strictEqual(yield* say(connection, "and goes on"), "and goes on")
    })
  )

  it.effect("sends plain data, whatever the keys (S-10)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const result = yield* connection.callTool("proto", {})
      assert.isUndefined(({} as { polluted?: unknown }).polluted)
      assert.isUndefined((result as { polluted?: unknown }).polluted)
      assert.include(JSON.stringify(result.structuredContent), '"__proto__":{"polluted":1}')
    })
  )

  it.effect("has its messages passed on without secrets of the config (BP-175, S-7)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const error = yield* Effect.flip(connection.callTool("refuse", {}))
      assert.strictEqual(error.reason, "remote")
      assert.strictEqual(error.message, "no: <redacted>")
      assert.isTrue((yield* connection.callTool("fail", {})).isError)
    })
  )

  it.effect("sees only the configured variables and PATH, HOME and LANG (S-1)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const env: Record<string, string> = JSON.parse(Support.textOf(yield* connection.callTool("env", {})))
      const inherited = ["PATH", "HOME", "LANG"]
      for (const name of inherited) assert.strictEqual(env[name], process.env[name])
      const allowed = new Set(["SECRET", ...inherited])
      assert.strictEqual(env["SECRET"], "sk-SECRET-0123456789")
      assert.deepStrictEqual(
        Object.keys(env).filter((name) => !allowed.has(name)),
        []
      )
    })
  )

  it.effect("also sees the proxies and certificates of this computer with inheritNetwork", () =>
    Effect.gen(function* () {
      const given = { HTTPS_PROXY: "http://proxy:8080", no_proxy: "localhost", NODE_EXTRA_CA_CERTS: "/ca.pem" }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          const before = { ...process.env }
          Object.assign(process.env, given, { AWS_SECRET_ACCESS_KEY: "k" })
          return before
        }),
        (before) => Effect.sync(() => void (process.env = before))
      )
      const connection = yield* Support.hostile("", "", { inheritNetwork: true })
      const env: Record<string, string> = JSON.parse(Support.textOf(yield* connection.callTool("env", {})))
      for (const [name, value] of Object.entries(given)) assert.strictEqual(env[name], value)
      assert.notProperty(env, "AWS_SECRET_ACCESS_KEY")
    })
  )

  it.effect("runs in the configured folder", () =>
    Effect.gen(function* () {
      const folder = path.dirname(yield* Support.sideFile)
      const connection = yield* Support.hostile("", "", { cwd: folder })
      assert.strictEqual(Support.textOf(yield* connection.callTool("cwd", {})), fs.realpathSync(folder))
    })
  )

  it.effect("is notified when a call is cancelled, and stays connected", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      yield* connection.tools
      const late = yield* Effect.flip(connection.callTool("wait", {}, { timeout: "30 millis" }))
      assert.strictEqual(late.reason, "timeout")
      const call = yield* Effect.forkChild(connection.callTool("wait", {}))
      yield* Support.until(() => Support.lines(side).filter((line) => line.startsWith("waiting")).length === 2)
      yield* Fiber.interrupt(call)
      assert.strictEqual(yield* say(connection, "still connected"), "still connected")
      const noted = Support.lines(side)
      const ids = (word: string) => noted.filter((line) => line.startsWith(word)).map((line) => line.slice(word.length))
      assert.lengthOf(ids("waiting"), 2)
      assert.deepStrictEqual(ids("cancelled"), ids("waiting"))
      assert.lengthOf(ids("pids"), 1)
    })
  )

  it.effect("that stops reading delays no call beyond its timeout", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      yield* connection.callTool("deaf", {})
      const unheard = Effect.flip(
        connection.callTool("say", { text: "x".repeat(20_000) }, { repeatable: true, timeout: "30 millis" })
      )
      const errors = yield* Effect.forEach(Array(100), () => unheard, { concurrency: "unbounded" })
      assert.deepStrictEqual([...new Set(errors.map(({ reason }) => reason))], ["timeout"])
    })
  )

  it.effect("that closes its input and keeps running is replaced", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      yield* connection.callTool("shut", {})
      assert.strictEqual(yield* say(connection, "heard"), "heard")
    })
  )

  it.effect("that closes its output and keeps running is replaced, and no call waits for it", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      yield* connection.callTool("hush", { answer: true })
      yield* connection.callTool("write", {})
      assert.lengthOf(
        Support.lines(side).filter((line) => line === "written"),
        1
      )
      const { message, reason } = yield* Effect.flip(connection.callTool("hush", {}))
      assert.strictEqual(reason, "outcome_unknown")
      assert.include(message, "the server closed its output")
    })
  )

  it.effect("that exits is read to the end, and not waited for any longer", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      for (let count = 0; count < 5; count++) {
        // A call that reaches a server that is about to end goes to the next one.
        const words = yield* connection.callTool("lastWords", {}, { repeatable: true })
        assert.lengthOf(Support.textOf(words), 60_000)
      }
      // An answer that was lost would have been asked for again, of one server more.
      assert.lengthOf(
        Support.lines(side).filter((line) => line.startsWith("pids")),
        5
      )
      const { message } = yield* Effect.flip(connection.callTool("leave", {}, { repeatable: true }))
      assert.include(message, "the server exited with code 1")
    })
  )

  it.effect("that was killed is reported as killed", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      assert.include((yield* Effect.flip(connection.callTool("die", {}))).message, "the server was killed")
    })
  )

  it.effect("that dies in a call is not asked to write twice, and is restarted for the next call (R-2, S-18)", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      const error = yield* Effect.flip(connection.callTool("writeAndDie", {}))
      assert.strictEqual(error.reason, "outcome_unknown")
      assert.include(error.message, "was not repeated")
      yield* connection.callTool("write", {})
      const noted = Support.lines(side).map((line) => line.replace(/\d.*/, ""))
      const life = ["pids ", "offered ", "tools/list", "written"]
      assert.deepStrictEqual(noted, [...life, ...life])
    })
  )

  it.effect(
    "that dies before it read all calls leaves none waiting: unsent calls go to the next process",
    () =>
      Effect.gen(function* () {
        const side = yield* Support.sideFile
        let sent = 0
        const connection = yield* Support.hostile("", side, { timeout: "100 seconds" }).pipe(
          Effect.provideService(
            ChildProcessSpawner.ChildProcessSpawner,
            watched(yield* ChildProcessSpawner.ChildProcessSpawner, (message) => {
              if (message.includes('"say"')) sent++
            })
          )
        )
        yield* connection.callTool("deaf", {})
        const [pid] = Support.lines(side)[0]!.split(" ").slice(1).map(Number)
        const text = "x".repeat(10_000)
        const calling = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 300 }), () => Effect.result(say(connection, text)), {
            concurrency: "unbounded"
          })
        )
        // It does not answer whether it is there, and is called all the same: three calls are sent, not all fit its input.
        yield* Support.until(() => sent >= 3)
        process.kill(pid!, "SIGKILL")
        const fates = yield* Effect.map(Fiber.join(calling), (results) =>
          results.map((result) => (Result.isFailure(result) ? result.failure.reason : result.success === text))
        )
        assert.deepStrictEqual(new Set(fates), new Set([true, "outcome_unknown"]))
      }),
    120_000
  )

  it.effect("that is killed between two calls is restarted, and each write is done once", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      yield* connection.callTool("write", {})
      const [pid] = Support.lines(side)[0]!.split(" ").slice(1).map(Number)
      process.kill(pid!, "SIGKILL")
      yield* connection.callTool("write", {})
      const noted = Support.lines(side)
      assert.lengthOf(
        noted.filter((line) => line.startsWith("pids")),
        2
      )
      assert.lengthOf(
        noted.filter((line) => line === "written"),
        2
      )
    })
  )

  it.effect("may ignore unknown methods, and is still used", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("mute", side)
      yield* connection.callTool("write", {})
      yield* connection.callTool("write", {})
      assert.lengthOf(
        Support.lines(side).filter((line) => line === "written"),
        2
      )
      assert.lengthOf(
        Support.lines(side).filter((line) => line === "ping"),
        1
      )
    })
  )

  it.effect("that dies in a repeatable call is asked again, twice at most", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      const error = yield* Effect.flip(connection.callTool("writeAndDie", {}, { repeatable: true }))
      assert.strictEqual(error.reason, "disconnected")
      assert.lengthOf(
        Support.lines(side).filter((line) => line === "written"),
        3
      )
    })
  )

  it.effect("has its current definition of a tool checked right before a call", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const error = yield* Effect.flip(connection.callTool("say", {}, { accepts: () => false }))
      assert.strictEqual(error.message, "tool 'say' of MCP server 'it' has changed")
    })
  )

  it.effect("may add a tool, which is then listed", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      const before = (yield* connection.tools).length
      yield* connection.awaitChanges.pipe(Effect.timeoutOption(Duration.zero))
      yield* connection.callTool("add", {})
      assert.deepStrictEqual([...(yield* connection.awaitChanges)], ["tools"])
      assert.lengthOf(yield* connection.tools, before + 1)
    })
  )

  it.effect("has all pages of its lists read (AC-13)", () =>
    Effect.gen(function* () {
      const connection = yield* Hostile
      assert.isAbove((yield* connection.tools).length, 20)
      assert.deepStrictEqual(
        (yield* connection.resourceTemplates).map((template) => template.uriTemplate),
        ["x://a/{id}", "x://b/{id}", "x://c/{id}"]
      )
      assert.deepStrictEqual(yield* connection.prompts, [])
    })
  )

  it.effect("may mark the last page in several ways, and no entry is listed twice (AC-13)", () =>
    Effect.gen(function* () {
      const names = (yield* (yield* Support.hostile()).tools).map((tool) => tool.name)
      for (const mode of ["null", "blank", "second"]) {
        const connection = yield* Support.hostile(mode)
        assert.deepStrictEqual(
          (yield* connection.tools).map((tool) => tool.name),
          names,
          mode
        )
        assert.lengthOf(yield* connection.resourceTemplates, 3, mode)
      }
    })
  )

  it.effect("cannot send an endless or oversized list", () =>
    Effect.gen(function* () {
      for (const mode of ["loop", "endless", "bloated"]) {
        const connection = yield* Support.hostile(mode)
        const error = yield* Effect.flip(connection.tools)
        assert.strictEqual(error.reason, "limit_exceeded", mode)
      }
    })
  )

  it.effect("offers no tool whose schema refers to another document (S-18)", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile("refs")
      const names = (yield* connection.tools).map((tool) => tool.name)
      assert.include(names, "local")
      assert.notIncludeMembers(names, ["remote", "relative", "output"])
    })
  )

  it.effect("may list malformed tools, which hide no other", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile("malformed")
      const names = (yield* connection.tools).map((tool) => tool.name)
      assert.include(names, "say")
      assert.notIncludeMembers(names, ["half", "desc"])
      const skippedTools = yield* connection.skippedTools
      assert.sameMembers([...skippedTools.keys()], ["half", "desc", "without a name"])
      assert.strictEqual(yield* say(connection, "it works"), "it works")
    })
  )

  it.effect("may write rubbish, which costs no message that arrives with it", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      assert.strictEqual(Support.textOf(yield* connection.callTool("rubbish", {})), "after rubbish")
      assert.strictEqual(yield* say(connection, "back"), "back")
    })
  )

  it.effect("may ask for more input, and the call fails for that reason", () =>
    Effect.gen(function* () {
      for (const settings of [{}, { protocolVersion: "2026-07-28" }]) {
        const connection = yield* Support.hostile("protocolVersion" in settings ? "modern" : "", "", settings)
        const error = yield* Effect.flip(connection.callTool("question", {}))
        assert.strictEqual(error.reason, "input_required")
        assert.strictEqual(error.message, "MCP server 'it': it asks for more input before it answers")
      }
    })
  )

  it.effect("that breaks the protocol loses the connection with a typed error, and gets another one (S-18)", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      const cases = {
        broken: "protocol",
        brokenLate: "protocol",
        nameless: "protocol",
        deep: "protocol",
        uncorrelated: "protocol",
        huge: "limit_exceeded"
      }
      for (const [name, reason] of Object.entries(cases)) {
        const error = yield* Effect.flip(connection.callTool(name, {}))
        assert.strictEqual(error.reason, reason, name)
      }
      assert.strictEqual(yield* say(connection, "back"), "back")
    })
  )

  describe("while connecting", () => {
    it.effect("steps down to the revision the server accepts", () =>
      Effect.gen(function* () {
        const side = yield* Support.sideFile
        const connection = yield* Support.hostile("strict", side)
        assert.strictEqual((yield* connection.info).protocolVersion, "2024-11-05")
        assert.deepStrictEqual(
          Support.lines(side).filter((line) => line.startsWith("offered")),
          ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"].map((version) => `offered ${version}`)
        )
      })
    )

    it.effect("subscribes to the changes of a 2026-07-28 server, and receives them", () =>
      Effect.gen(function* () {
        const side = yield* Support.sideFile
        const connection = yield* Support.hostile("modern", side, { protocolVersion: "2026-07-28" })
        assert.strictEqual((yield* connection.info).protocolVersion, "2026-07-28")
        assert.strictEqual((yield* connection.awaitChanges).size, 3)
        assert.deepStrictEqual([...(yield* connection.awaitChanges)], ["tools"])
        assert.include(Support.lines(side), "listens toolsListChanged,promptsListChanged,resourcesListChanged")
      })
    )

    it.effect("ends the process when connecting is interrupted", () =>
      Effect.gen(function* () {
        const side = yield* Support.sideFile
        const connection = yield* Support.hostile("silent", side)
        const connecting = yield* Effect.forkChild(connection.info)
        yield* Support.until(() => Support.lines(side).length > 0)
        const [pid] = Support.lines(side)[0]!.split(" ").slice(1).map(Number)
        yield* Fiber.interrupt(connecting)
        assert.isFalse(Support.isAlive(pid!))
      })
    )

    it.effect("that hangs has its last error output shown", () =>
      Effect.gen(function* () {
        const connection = yield* Support.hostile("hanging", "", { connectTimeout: "3 seconds", timeout: "1 second" })
        yield* connection.tools
        const call = yield* Effect.flip(connection.callTool("wait", {}))
        assert.strictEqual(call.reason, "timeout")
        assert.include(call.message, "; it wrote: waiting for a lock")
        const silent = yield* Support.hostile("hung", "", { connectTimeout: "3 seconds" })
        const error = yield* Effect.flip(silent.info)
        assert.strictEqual(error.reason, "timeout")
        assert.include(error.message, "; it wrote: waiting for a port")
      })
    )

    it.effect("reports why a server cannot be used", () =>
      Effect.gen(function* () {
        const cases: ReadonlyArray<readonly [string, object, string, string]> = [
          ["future", {}, "version", "speaks no revision of the protocol that kernai knows"],
          ["dead", {}, "connect", "the server exited with code 3"],
          ["silent", { connectTimeout: "100 millis" }, "timeout", "did not answer initialize in time"],
          ["", { command: "kernai-no-such-command", args: ["sk"] }, "connect", "cannot be started (NotFound)"],
          ["", { command: "no-such-${HOME}", args: [] }, "connect", "'no-such-${HOME}' cannot be started (NotFound)"]
        ]
        for (const [mode, settings, reason, message] of cases) {
          const connection = yield* Support.hostile(mode, "", { ...settings })
          const error = yield* Effect.flip(connection.info)
          assert.strictEqual(error.reason, reason)
          assert.include(error.message, message)
        }
      })
    )
  })

  describe("reports the last error output of a process that ended", () => {
    const secret = "word-9f8e7d6c5b4a"
    const cases: ReadonlyArray<readonly [string, string, string]> = [
      ["nothing", "", ""],
      ["the last line", "one\ntwo  \n\n  \n", "; it wrote: two"],
      ["an error rather than its stack trace", "go\nError: no key\n    at x.js:1\n", "; it wrote: Error: no key"],
      ["hidden characters as escapes", "\u001b[31mred\u202e\n", "; it wrote: \\u{1b}[31mred\\u{202e}"],
      ["300 characters at most", "ab ".repeat(150), `; it wrote: ${"ab ".repeat(100)}…`],
      ["the recent output only", `Error: early\n${"ab\n".repeat(2000)}`, "; it wrote: ab"],
      ["no half of a secret at the end", `${"ab ".repeat(98)}${secret} more`, `; it wrote: ${"ab ".repeat(98)}…`],
      ["no half of a secret at the beginning", `${secret}${" ab".repeat(1362)}`, `; it wrote: ${"ab ".repeat(100)}…`],
      [
        "no half of a secret that arrived in two chunks",
        `${"x".repeat(5000)}${secret.slice(0, 9)}\f${secret.slice(9)} more`,
        "; it wrote: more"
      ],
      ["no whole secret", `key ${secret}`, "; it wrote: key <redacted>"]
    ]
    it.effect.each(cases)("%s", ([, complaint, told]) =>
      Effect.gen(function* () {
        const server = Support.node(Support.hostileScript, "complaining", "", complaint)
        const connection = yield* Support.connect({ ...server, env: { SECRET: secret } })
        const { message } = yield* Effect.flip(connection.info)
        assert.strictEqual(message, `cannot connect to MCP server 'it': the server exited with code 3${told}`)
      })
    )
  })

  it.effect("may write any number of lines in pieces, if none is too long", () =>
    Effect.gen(function* () {
      const connection = yield* Support.hostile()
      for (let count = 0; count < 4; count++) {
        assert.lengthOf(Support.textOf(yield* connection.callTool("halves", {})), 3_000_000)
      }
    })
  )

  it.effect("that ends with its input has time to clean up", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      yield* Effect.scoped(Effect.flatMap(Support.hostile("tidy", side), ({ info }) => info))
      assert.include(Support.lines(side), "tidied up")
    }).pipe(Effect.provideService(Limits.Limits, Limits.defaults))
  )

  it.effect("that ends with its input leaves no child behind (R-15)", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      yield* Effect.scoped(Effect.flatMap(Support.hostile("parent", side), ({ info }) => info))
      const pids = Support.lines(side)[0]!.split(" ").slice(1).map(Number)
      assert.lengthOf(pids, 2)
      assert.deepStrictEqual(pids.filter(Support.isAlive), [])
    })
  )

  it.effect("that ignores SIGTERM is killed with its children when the scope closes (R-15)", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const pids = yield* Effect.scoped(
        Effect.gen(function* () {
          const connection = yield* Support.hostile("stubborn", side)
          yield* connection.info
          return Support.lines(side)[0]!.split(" ").slice(1).map(Number)
        })
      )
      assert.lengthOf(pids, 2)
      assert.deepStrictEqual(pids.filter(Support.isAlive), [])
      assert.include(Support.lines(side), "SIGTERM")
    })
  )
})
