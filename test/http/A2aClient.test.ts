/** Agents of other services: the server of `@a2a-js/sdk` as it comes, and an agent that is served here. */
import { TaskState } from "@a2a-js/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Redacted, Schema, type Scope, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Content, Limits, Policy, Skill } from "kernai"
import { A2a, A2aClient, type A2aError } from "kernai/http"
import { MockProvider } from "kernai/testing"
import * as Remote from "../support/a2aAgent.ts"
import { serve, spoken } from "../support/http.ts"
import { until } from "../support/until.ts"

const clientOf = (url: string, options: Partial<A2aClient.Options> = {}) =>
  Effect.provide(A2aClient.make({ url, name: "teller", ...options }), FetchHttpClient.layer)

const says =
  (text: string) =>
  ({ say, status }: Remote.Turn) => {
    say(text)
    status(TaskState.TASK_STATE_COMPLETED)
  }

const failureOf = <A>(effect: Effect.Effect<A, A2aError.A2aError>) =>
  Effect.map(Effect.flip(effect), ({ message, reason }) => [reason, message] as const)

const json = { "content-type": "application/json" }

describe("A2aClient", () => {
  for (const version of ["1.0", "0.3"] as const) {
    describe(`with an agent of version ${version}`, () => {
      it.live("reads the card, asks, and returns the answer with its media and data", () =>
        Effect.gen(function* () {
          const png = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10])
          const { headers, url } = yield* Remote.run({
            version,
            turn: ({ data, file, say, status, text }) => {
              say(`You asked: ${text} ${JSON.stringify(data)}`)
              file(png, "image/png")
              status(TaskState.TASK_STATE_COMPLETED)
            }
          })
          const authorization = Redacted.make("Bearer secret-token")
          const client = yield* clientOf(url, { headers: { authorization } })
          const card = yield* client.card
          assert.deepInclude(card, { name: "Teller", version: "3.1.0", protocolVersion: version, isStreaming: true })
          assert.deepStrictEqual(card.skills, [{ id: "owe", name: "Debts", description: "Adds up debts" }])
          const task = yield* client.ask({ content: [Content.text("How much?"), Content.data({ of: "Eva" })] })
          assert.strictEqual(task.state, "completed")
          assert.strictEqual(Content.toText(task.content[0]!), `You asked: How much? {"of":"Eva"}\n`)
          assert.deepInclude(task.content[1], { type: "image", mediaType: "image/png", data: png })
          assert.isTrue(headers.every((sent) => sent.authorization === "Bearer secret-token"))
        }).pipe(Effect.scoped)
      )

      it.live("emits the answer as it grows", () =>
        Effect.gen(function* () {
          const { url } = yield* Remote.run({
            version,
            turn: ({ say, status }) => {
              say("Twelve")
              say(" crowns", true)
              status(TaskState.TASK_STATE_COMPLETED)
            }
          })
          const client = yield* clientOf(url)
          const seen = yield* Stream.runCollect(client.stream("How much?"))
          assert.deepStrictEqual(
            seen.map(({ state, text }) => [state, text]),
            [
              ["working", ""],
              ["working", "Twelve"],
              ["working", "Twelve crowns"],
              ["completed", "Twelve crowns"]
            ]
          )
        }).pipe(Effect.scoped)
      )

      it.live("returns the question of a task that requires input, and sends the reply to that task", () =>
        Effect.gen(function* () {
          const { url } = yield* Remote.run({
            version,
            turn: ({ data, isReply, say, status, text }) => {
              if (!isReply) return status(TaskState.TASK_STATE_INPUT_REQUIRED, "Whose debts?", { field: "name" })
              say(`${text}${JSON.stringify(data)} owes nothing.`)
              return status(TaskState.TASK_STATE_COMPLETED)
            }
          })
          const client = yield* clientOf(url)
          const asked = yield* client.ask("How much?")
          assert.strictEqual(asked.state, "input_required")
          assert.deepStrictEqual(asked.message, [Content.text("Whose debts?\n"), Content.data({ field: "name" })])
          const { taskId } = asked
          const done = yield* client.ask({ content: [Content.text("Her: "), Content.data({ name: "Eva" })], taskId })
          assert.deepStrictEqual([done.state, done.taskId], ["completed", taskId])
          assert.strictEqual(done.text, `Her: {"name":"Eva"} owes nothing.`)
        }).pipe(Effect.scoped)
      )

      it.live("continues over a new connection when a stream breaks, and sends the message once", () =>
        Effect.gen(function* () {
          const broken = Remote.gate()
          const agent = yield* Remote.run({
            version,
            turn: async ({ say, status }) => {
              say("Twelve")
              await broken.opened
              say(" crowns", true)
              say(" and a half", true)
              status(TaskState.TASK_STATE_COMPLETED)
            }
          })
          const client = yield* clientOf(agent.url)
          let heard = ""
          const asking = yield* Effect.forkChild(
            client.ask("How much?", { onChange: ({ text }) => Effect.sync(() => (heard = text)) })
          )
          yield* until(() => heard === "Twelve")
          agent.drop()
          const subscribe = version === "1.0" ? "SubscribeToTask" : "tasks/resubscribe"
          yield* until(() => agent.methods.includes(subscribe))
          broken.open()
          assert.strictEqual((yield* Fiber.join(asking)).text, "Twelve crowns and a half")
          assert.strictEqual(agent.messageIds.length, 1)
        }).pipe(Effect.scoped)
      )

      it.live("cancels the task when it is interrupted, and when its time is over", () =>
        Effect.gen(function* () {
          const agent = yield* Remote.run({ version, turn: ({ say }) => (say("Well"), Remote.gate().opened) })
          const client = yield* clientOf(agent.url)
          let heard = ""
          const asking = yield* Effect.forkChild(
            client.ask("How much?", { onChange: ({ text }) => Effect.sync(() => (heard = text)) })
          )
          yield* until(() => heard === "Well")
          yield* Fiber.interrupt(asking)
          assert.strictEqual(agent.cancelled.length, 1)
          const hasty = yield* clientOf(agent.url, { timeout: "50 millis" })
          const [reason] = yield* failureOf(hasty.ask("How much?"))
          assert.strictEqual(reason, "timeout")
          assert.strictEqual(agent.cancelled.length, 2)
        }).pipe(Effect.scoped)
      )

      it.live("polls the task of an agent that has no stream", () =>
        Effect.gen(function* () {
          const looked = Remote.gate()
          const agent = yield* Remote.run({
            version,
            streaming: false,
            turn: async ({ say, status }) => {
              say("Twelve")
              await looked.opened
              status(TaskState.TASK_STATE_COMPLETED)
            }
          })
          const client = yield* clientOf(agent.url)
          const asking = yield* Effect.forkChild(client.ask("How much?"))
          const get = version === "1.0" ? "GetTask" : "tasks/get"
          yield* until(() => agent.methods.filter((method) => method === get).length > 1)
          looked.open()
          assert.strictEqual((yield* Fiber.join(asking)).text, "Twelve")
          assert.strictEqual(agent.messageIds.length, 1)
        }).pipe(Effect.scoped)
      )

      it.live("accepts a reply without a task as the answer", () =>
        Effect.gen(function* () {
          const { url } = yield* Remote.run({ version, turn: ({ reply }) => reply("Nothing.") })
          const task = yield* (yield* clientOf(url)).ask("How much?")
          assert.deepStrictEqual([task.state, task.text, task.taskId], ["completed", "Nothing.", undefined])
        }).pipe(Effect.scoped)
      )
    })
  }

  it.live("fails with the message of an agent that did not complete its task, and with its refusal", () =>
    Effect.gen(function* () {
      const { url } = yield* Remote.run({
        turn: ({ status, text }) =>
          status(text === "fail" ? TaskState.TASK_STATE_FAILED : TaskState.TASK_STATE_REJECTED, "The books are shut.")
      })
      const client = yield* clientOf(url)
      assert.deepStrictEqual(yield* failureOf(client.ask("fail")), [
        "not_completed",
        "A2A agent 'teller' did not complete its task, which is failed: The books are shut."
      ])
      assert.include((yield* failureOf(client.ask("refuse")))[1], "which is rejected")
      assert.strictEqual((yield* failureOf(client.task("nix")))[0], "not_found")
      assert.strictEqual((yield* failureOf(client.ask({ content: "Well?", taskId: "nix" })))[0], "not_found")
    }).pipe(Effect.scoped)
  )

  it.live("sends credentials to no other origin than that of the card, unless it is listed", () =>
    Effect.gen(function* () {
      const other = yield* Remote.run({ turn: says("Mine now.") })
      const elsewhere = (card: object) => ({
        ...card,
        supportedInterfaces: [{ url: `${other.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }]
      })
      const { url } = yield* Remote.run({ card: elsewhere, turn: says("Mine.") })
      const [reason, words] = yield* failureOf((yield* clientOf(url)).ask("How much?"))
      assert.deepStrictEqual([reason, words.includes("'origins' does not list")], ["config", true])
      assert.strictEqual(other.headers.length, 0)
      const trusting = yield* clientOf(url, { origins: [other.url] })
      assert.strictEqual((yield* trusting.ask("How much?")).text, "Mine now.")
      const moved = yield* Remote.run({
        turn: says("Mine."),
        intercept: (_, response) => {
          response.writeHead(302, { location: `${other.url}/.well-known/agent-card.json` }).end()
          return true
        }
      })
      const before = other.headers.length
      assert.include((yield* failureOf((yield* clientOf(moved.url)).ask("How much?")))[1], `it moved to ${other.url}`)
      assert.strictEqual(other.headers.length, before)
    }).pipe(Effect.scoped)
  )

  it.live("answers hostile agents with typed errors, without secrets and within its limits", () =>
    Effect.gen(function* () {
      const replying = (status: number, body: string, type = "application/json") =>
        Remote.run({
          turn: says(""),
          intercept: ({ method }, response) => {
            if (method !== "POST") return false
            response.writeHead(status, { "content-type": type }).end(body)
            return true
          }
        })
      const error = (code: number, message: string) =>
        JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code, message } })
      const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } }
      const event = (result: object) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`
      const artifact = { artifactId: "a", parts: [{ text: "x".repeat(3_000) }] }
      const flood = event({ task }) + event({ artifactUpdate: { taskId: "t", contextId: "c", artifact } }).repeat(1)
      const cases: ReadonlyArray<readonly [string, Effect.Effect<Remote.Running, never, Scope.Scope>]> = [
        ["protocol", replying(200, "<html>")],
        ["protocol", replying(200, "[".repeat(5_000))],
        ["protocol", replying(200, JSON.stringify({ jsonrpc: "2.0", id: 1, result: { task: { id: 7 } } }))],
        ["needs_sign_in", replying(401, "")],
        ["remote", replying(500, error(-32603, "key sk-ant-REDACTED leaked\u001b[31m"))],
        ["version", replying(200, error(-32009, "no such version"))],
        ["outcome_unknown", replying(503, "")],
        ["limit_exceeded", replying(200, `"${"x".repeat(30_000)}"`)],
        ["limit_exceeded", replying(200, flood, "text/event-stream")]
      ]
      for (const [expected, agent] of cases) {
        const { url } = yield* agent
        const client = yield* Effect.provide(
          clientOf(url, { headers: { authorization: Redacted.make("Bearer secret-token") } }),
          Limits.layer({ fetchedBytes: 20_000, replyLength: 4_000 })
        )
        const [reason, words] = yield* failureOf(client.ask("How much?"))
        assert.strictEqual(reason, expected)
        assert.notMatch(words, /secret-token|sk-ant|\p{Cc}/u)
      }
      for (const card of [() => ({}), () => ({ name: "x", supportedInterfaces: [] })]) {
        const { url } = yield* Remote.run({ card, turn: says("") })
        assert.include(["protocol", "version"], (yield* failureOf((yield* clientOf(url)).card))[0])
      }
      for (const url of ["file:///etc/passwd", "http://user:secret-token@host", "nonsense"]) {
        const [reason, words] = yield* failureOf(clientOf(url))
        assert.strictEqual(reason, "config")
        assert.notInclude(words, "secret-token")
      }
      const bad = clientOf("http://localhost", { headers: { "x-key": Redacted.make("a\nb") } })
      assert.strictEqual((yield* failureOf(bad))[0], "config")
      const gone = yield* Effect.scoped(Remote.run({ turn: says("") }))
      assert.strictEqual((yield* failureOf((yield* clientOf(gone.url)).ask("?")))[0], "connect")
    }).pipe(Effect.scoped)
  )

  it.live("reads the card again after it could not be read", () =>
    Effect.gen(function* () {
      let isAway = true
      const { url } = yield* Remote.run({
        turn: says("Twelve."),
        intercept: (_, response) => {
          if (isAway) response.writeHead(503, json).end("{}")
          return isAway
        }
      })
      const client = yield* clientOf(url)
      assert.strictEqual((yield* failureOf(client.ask("How much?")))[0], "disconnected")
      isAway = false
      assert.strictEqual((yield* client.ask("How much?")).text, "Twelve.")
    }).pipe(Effect.scoped)
  )

  describe("with an agent that is served by A2a", () => {
    const pay = Skill.make("pay", {
      description: "Pays",
      input: Schema.Struct({ to: Schema.String }),
      execute: ({ to }) => Effect.succeed({ paid: to })
    })
    const clerk = Agent.make({
      name: "clerk",
      instructions: "",
      model: "scripted",
      skills: "all",
      dialect: "tools"
    })
    const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

    it.live("receives a request for an approval, and answers it", () =>
      Effect.gen(function* () {
        const { url } = yield* serve({
          agent: clerk,
          routes: A2a.layer(),
          skills: [pay],
          with: asks,
          replies: [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, { text: "Done." }]
        })
        const client = yield* clientOf(url)
        const asked = yield* client.ask("Pay Eva.")
        assert.strictEqual(asked.state, "input_required")
        assert.deepInclude(asked.message[1], { type: "data" })
        const { taskId } = asked
        const done = yield* client.ask({ content: [Content.data({ approved: true })], taskId })
        assert.deepStrictEqual([done.state, done.text], ["completed", "Done."])
        assert.deepStrictEqual((yield* client.task(taskId ?? "")).text, "Done.")
      }).pipe(Effect.scoped)
    )

    it.live("continues a conversation, follows a task, and cancels its run", () =>
      Effect.gen(function* () {
        const model = MockProvider.make("A dot.", "Red.")
        const talking = yield* clientOf((yield* serve({ routes: A2a.layer(), model })).url)
        const first = yield* talking.ask("What is it?")
        yield* talking.ask({ content: "Its colour?", contextId: first.contextId })
        assert.deepStrictEqual(
          model.lastCall?.messages.slice(-3).map(({ role }) => role),
          ["user", "assistant", "user"]
        )
        const pieces = yield* Queue.unbounded<string>()
        const { url } = yield* serve({ routes: A2a.layer(), agent: clerk, model: spoken(pieces) })
        const client = yield* clientOf(url)
        yield* Queue.offer(pieces, "Hello")
        const begun = yield* Stream.runHead(Stream.filter(client.stream("Speak."), ({ text }) => text === "Hello"))
        const taskId = begun._tag === "Some" ? (begun.value.taskId ?? "") : ""
        const following = yield* Effect.forkChild(Stream.runCollect(client.follow(taskId)))
        yield* client.cancel(taskId)
        assert.strictEqual((yield* Fiber.join(following)).at(-1)?.state, "cancelled")
      }).pipe(Effect.scoped)
    )
  })
})
