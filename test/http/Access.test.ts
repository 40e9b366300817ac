/** Who may use the routes of a server, and how much of it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Queue, Redacted, Schedule, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { request } from "node:http"
import { Access, AiSdkUi } from "kernai/http"
import { final } from "../support/blocks.ts"
import { clientOf, serve, spoken } from "../support/http.ts"

const people: Readonly<Record<string, Access.Caller>> = {
  "token-a": { id: "ada" },
  "token-b": { id: "bob" },
  // The same id in a tenant is another caller.
  "token-t": { id: "ada", tenant: "acme" },
  "token-o": { id: "olga", isOperator: true }
}

const verify = (token: Redacted.Redacted<string>) => Effect.succeed(Option.fromNullishOr(people[Redacted.value(token)]))

const as = (url: string, token: string) =>
  clientOf(url, { transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(token)) })

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: ReadonlyArray<string>
}

/** A request with any headers, whose body is sent in chunks of unknown length. */
const ask = (url: string, { body = [], headers = {}, method = "GET" }: Asked = {}) =>
  Effect.promise(
    () =>
      new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
        const sent = request(url, { method, headers }, (response) => {
          let text = ""
          response.on("data", (chunk) => (text += chunk))
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text }))
        })
        sent.on("error", reject)
        for (const chunk of body) sent.write(chunk)
        sent.end()
      })
  )

const json = { "content-type": "application/json" }

describe("Access", () => {
  it.live("refuses requests without a token, or with a wrong one, on every route", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ with: Access.bearer(verify) })
      const routes: ReadonlyArray<readonly [string, string]> = [
        ["GET", "/runs"],
        ["POST", "/runs"],
        ["POST", "/runs/stream"],
        ["GET", "/runs/one"],
        ["GET", "/runs/one/events"],
        ["GET", "/runs/one/questions"],
        ["POST", "/runs/one/answers"],
        ["POST", "/runs/one/cancel"],
        ["GET", "/runs/one/result"],
        ["POST", "/runs/one/media"],
        ["GET", "/runs/one/media/x"],
        ["GET", "/agents"]
      ]
      for (const [method, path] of routes) {
        for (const authorization of ["", "Bearer wrong", "Basic token-a"]) {
          const { status, text } = yield* ask(url + path, { method, headers: { authorization, ...json } })
          assert.deepStrictEqual(
            [path, status, JSON.parse(text).title],
            [path, 401, "Credentials are missing or wrong"]
          )
        }
      }
      const refused = yield* Effect.promise(() => fetch(`${url}/runs`))
      assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
      assert.strictEqual((yield* ask(`${url}/health`)).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("admits only requests from this machine with the token of this start", () =>
    Effect.gen(function* () {
      const [token, other] = [yield* Access.makeToken, yield* Access.makeToken]
      assert.notStrictEqual(Redacted.value(token), Redacted.value(other))
      assert.match(Redacted.value(token), /^[\w-]{43}$/)
      const { url } = yield* serve({ replies: [final("Done.")], with: Access.localToken(token) })
      for (const authorization of ["", "Bearer wrong", `Bearer ${Redacted.value(other)}`, Redacted.value(token)]) {
        assert.strictEqual((yield* ask(`${url}/runs`, { headers: { authorization } })).status, 401)
      }
      const authorization = `Bearer ${Redacted.value(token)}`
      const page = { authorization, origin: "https://evil.example" }
      assert.strictEqual((yield* ask(`${url}/runs`, { headers: page })).status, 403)
      assert.strictEqual((yield* ask(`${url}/runs`, { headers: { authorization, host: "evil.example" } })).status, 403)
      const client = yield* as(url, Redacted.value(token))
      assert.strictEqual((yield* client.run("clerk", "Work.")).text, "Done.")
    }).pipe(Effect.scoped)
  )

  it.live("hides the runs of a caller from others, under every name they may choose", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("A secret.")], with: Access.bearer(verify) })
      const [ada, bob, olga] = [yield* as(url, "token-a"), yield* as(url, "token-b"), yield* as(url, "token-o")]
      const { runId } = yield* ada.run("clerk", "Tell me.", { runId: "one" })
      assert.strictEqual(runId, "ada~one")
      assert.strictEqual((yield* ada.head("one")).runId, runId)
      for (const name of ["one", "ada~one", "ada%7Eone", "../ada~one", "bob~ada~one"]) {
        const tries = [
          bob.head(name),
          bob.questions(name),
          bob.cancel(name),
          bob.result(name),
          bob.answer(name, []),
          bob.getMedia(name, "media_000000000000"),
          Stream.runDrain(bob.follow(name))
        ]
        for (const attempt of tries) assert.strictEqual((yield* Effect.flip(attempt))._tag, "NotFound", name)
      }
      assert.deepStrictEqual((yield* bob.list()).runs, [])
      assert.deepStrictEqual((yield* bob.list({ rootRunId: "ada~one" })).runs, [])
      assert.strictEqual((yield* bob.run("clerk", "Tell me.", { runId: "one" })).runId, "bob~one")
      assert.strictEqual((yield* olga.list()).runs.length, 2)
      assert.strictEqual((yield* olga.result(runId)).text, "A secret.")
    }).pipe(Effect.scoped)
  )

  it.live("keeps callers of several tenants apart, and lists runs by tenant and label", () =>
    Effect.gen(function* () {
      const tenants: Readonly<Record<string, Access.Caller>> = {
        acme: { id: "ada", tenant: "acme", roles: ["boss"], labels: { team: "sales", kind: "a=b" } },
        umbrella: { id: "ada", tenant: "umbrella", labels: { team: "sales" } },
        none: { id: "ada" },
        odd: { id: "ada@acme" },
        operator: { id: "olga", isOperator: true },
        wide: { id: "ada", tenant: "x".repeat(49) },
        many: { id: "ada", labels: { "no name": "" } }
      }
      const found = (token: Redacted.Redacted<string>) =>
        Effect.succeed(Option.fromNullishOr(tenants[Redacted.value(token)]))
      const { url } = yield* serve({ replies: [final("A secret.")], with: Access.bearer(found) })
      const [acme, operator] = [yield* as(url, "acme"), yield* as(url, "operator")]
      const { runId } = yield* acme.run("clerk", "Tell me.", { runId: "one" })
      for (const tenant of ["umbrella", "none", "odd"]) {
        const other = yield* as(url, tenant)
        for (const name of ["one", runId, `ada@acme~one`, `acme~one`]) {
          assert.strictEqual((yield* Effect.flip(other.head(name)))._tag, "NotFound", `${tenant}: ${name}`)
        }
        yield* other.run("clerk", "Tell me.", { runId: "one" })
        assert.strictEqual((yield* other.list()).runs.length, 1)
      }
      const ids = (query: Parameters<typeof operator.list>[0]) =>
        Effect.map(operator.list(query), ({ runs }) => runs.map(({ runId }) => runId).toSorted())
      assert.strictEqual((yield* ids({})).length, 4)
      assert.deepStrictEqual(yield* ids({ tenant: "acme" }), [runId])
      assert.deepStrictEqual(yield* ids({ label: "team=sales" }), [runId, "ada@umbrella~one"])
      assert.deepStrictEqual(yield* ids({ label: ["team=sales", "kind=a=b"] }), [runId])
      assert.deepStrictEqual(yield* ids({ tenant: "umbrella", label: "kind=a=b" }), [])
      assert.deepInclude(yield* operator.head(runId), { tenant: "acme", labels: { team: "sales", kind: "a=b" } })
      assert.deepStrictEqual((yield* acme.list({ tenant: "umbrella" })).runs, [])
      assert.strictEqual((yield* Effect.flip(operator.list({ label: "team" })))._tag, "Invalid")
      for (const refused of ["wide", "many"]) {
        const headers = { authorization: `Bearer ${refused}` }
        assert.strictEqual((yield* ask(`${url}/runs`, { headers })).status, 403, refused)
      }
    }).pipe(Effect.scoped)
  )

  it.live("shows the instructions of an agent to operators only", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Done.")], with: Access.bearer(verify) })
      const [ada, olga] = [yield* as(url, "token-a"), yield* as(url, "token-o")]
      const { runId } = yield* ada.run("clerk", "Work.")
      const seen = JSON.stringify(yield* Stream.runCollect(ada.follow(runId)))
      assert.notInclude(seen, "Secret instructions")
      assert.include(JSON.stringify(yield* Stream.runCollect(olga.follow(runId))), "Secret instructions")
    }).pipe(Effect.scoped)
  )

  it.live("pages through the runs of a caller", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Done.")], with: Access.bearer(verify) })
      const [ada, bob] = [yield* as(url, "token-a"), yield* as(url, "token-b")]
      for (const runId of ["1", "2", "3"]) {
        yield* ada.run("clerk", "Work.", { runId })
        yield* bob.run("clerk", "Work.", { runId })
      }
      const first = yield* ada.list({ limit: 2 })
      const second = yield* ada.list({ limit: 2, after: first.next ?? "" })
      const ids = [...first.runs, ...second.runs].map(({ runId }) => runId)
      assert.deepStrictEqual(ids.toSorted(), ["ada~1", "ada~2", "ada~3"])
      assert.isUndefined(second.next)
    }).pipe(Effect.scoped)
  )

  it.live("takes a session from a cookie", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ with: Access.cookie("session", verify) })
      assert.strictEqual((yield* ask(`${url}/runs`)).status, 401)
      assert.strictEqual((yield* ask(`${url}/runs`, { headers: { cookie: "session=token-a" } })).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("refuses foreign hosts and pages on loopback", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Done.")] })
      const host = new URL(url).host
      const status = (headers: Record<string, string>) =>
        Effect.map(ask(`${url}/runs`, { headers }), ({ status }) => status)
      assert.strictEqual(yield* status({}), 200)
      assert.strictEqual(yield* status({ host: "evil.example" }), 403)
      assert.strictEqual(yield* status({ host: "localhost.evil.example:80" }), 403)
      assert.strictEqual(yield* status({ origin: "https://evil.example" }), 403)
      assert.strictEqual(yield* status({ origin: "null" }), 403)
      assert.strictEqual(yield* status({ origin: `http://${host}` }), 200)
      const known = Access.layer(Access.local, { hosts: ["app.example"], origins: ["https://app.example"] })
      const other = yield* serve({ with: known })
      const headers = { host: "app.example", origin: "https://app.example" }
      assert.strictEqual((yield* ask(`${other.url}/runs`, { headers })).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("refuses what a foreign page can send without asking, on every route", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Done.")], routes: AiSdkUi.layer() })
      const origin = "https://evil.example"
      const tries: ReadonlyArray<readonly [string, string]> = [
        ["POST", "/runs"],
        ["POST", "/runs/stream"],
        ["GET", "/runs/one/events"],
        ["POST", "/runs/one/cancel"],
        ["POST", "/runs/one/media"],
        ["POST", "/api/chat"],
        ["GET", "/api/chat/one/stream"],
        ["POST", "/api/chat/one/stop"]
      ]
      for (const [method, path] of tries) {
        const headers = { origin, "content-type": "text/plain" }
        assert.strictEqual((yield* ask(url + path, { method, headers })).status, 403, path)
      }
      const body = [JSON.stringify({ input: "Work.", id: "one", messages: [], trigger: "submit-message" })]
      const plain = { "content-type": "text/plain" }
      assert.strictEqual((yield* ask(`${url}/runs`, { method: "POST", headers: plain, body })).status, 403)
      assert.strictEqual((yield* ask(`${url}/api/chat`, { method: "POST", headers: plain, body })).status, 403)
      assert.strictEqual(JSON.parse((yield* ask(`${url}/runs`)).text).runs.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live("refuses bodies that are too large, with and without a length", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ options: { limits: { bodyBytes: 1_000 } }, replies: [final("Done.")] })
      const body = JSON.stringify({ input: "x".repeat(2_000) })
      const chunked = yield* ask(`${url}/runs`, {
        method: "POST",
        headers: json,
        body: [body.slice(0, 900), body.slice(900)]
      })
      assert.deepStrictEqual([chunked.status, JSON.parse(chunked.text).title], [413, "The request is too large"])
      const headers = { ...json, "content-length": String(body.length) }
      const counted = yield* ask(`${url}/runs`, { method: "POST", headers, body: [body] })
      assert.strictEqual(counted.status, 413)
    }).pipe(Effect.scoped)
  )

  it.live("limits the streams that one caller follows, and frees a place when one is left", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const limits = { followers: 1 }
      const { url } = yield* serve({ model: spoken(pieces), with: Access.bearer(verify), options: { limits } })
      const [ada, bob] = [yield* as(url, "token-a"), yield* as(url, "token-t")]
      const runId = yield* ada.start("clerk", "Speak.")
      const other = yield* bob.start("clerk", "Speak.")
      const begun = ({ type }: { readonly type: string }) => type === "run_started"
      const isFull = Effect.map(Effect.exit(Stream.runHead(ada.follow(runId))), ({ _tag }) => _tag === "Failure")
      const left = yield* ada.follow(runId).pipe(
        Stream.filter(begun),
        Stream.take(1),
        Stream.mapEffect(() => Effect.all([isFull, Stream.runHead(bob.follow(other))])),
        Stream.runHead
      )
      assert.deepInclude(left, { _tag: "Some" })
      if (Option.isSome(left)) assert.isTrue(left.value[0])
      const again = yield* Effect.retry(Stream.runHead(ada.follow(runId)), {
        times: 250,
        schedule: Schedule.spaced("20 millis")
      })
      assert.isTrue(Option.isSome(again))
    }).pipe(Effect.scoped)
  )
})
