/** The studio's server: who may read and change runs, and what it sends. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import { join } from "node:path"
import {
  Agent,
  Kernel,
  KernelError,
  MediaStore,
  Model,
  Policy,
  ProtocolRegistry,
  Provider,
  type RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { Studio } from "kernai/studio"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`paid ${to}`)
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all" })

const serve = (
  {
    agents = [agent],
    ...options
  }: Partial<Studio.PageOptions> & { readonly agents?: ReadonlyArray<typeof agent> } = {},
  policy: Layer.Layer<never> = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))
): Effect.Effect<Site, never, Scope.Scope> =>
  Effect.gen(function* () {
    const kernel = Kernel.layer.pipe(
      Layer.provide([
        Layer.succeed(Provider.Provider, MockProvider.make(command("pay", { to: "Eva" }), final("Done."))),
        SkillRegistry.layer(pay),
        ProtocolRegistry.layer(),
        policy
      ]),
      Layer.provideMerge(Layer.merge(RunStore.layerMemory, MediaStore.layerMemory))
    )
    const server = HttpRouter.serve(Studio.layer({ agents, ...options }), {
      disableLogger: true,
      disableListenLog: true
    }).pipe(
      Layer.provide(kernel),
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
      ),
      Layer.orDie
    )
    const context = yield* Layer.build(server)
    const { address } = Context.get(context, HttpServer.HttpServer)
    const port = "port" in address ? address.port : 0
    const studio = Context.get(context, Studio.Studio)
    return { port, studio, prefix: studio.path === "/" ? "" : studio.path }
  })

interface Site {
  readonly port: number
  readonly studio: Studio.Studio["Service"]
  readonly prefix: string
}

interface Reply {
  readonly status: number
  readonly headers: NodeJS.Dict<string | ReadonlyArray<string>>
  readonly text: string
}

/** Sends a request with headers that `fetch` would not send. */
const send = (
  { port, prefix }: Site,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: unknown
) =>
  Effect.callback<Reply>((resume) => {
    const type = { "content-type": "application/json" }
    const sent = request({ port, host: "127.0.0.1", method, path: prefix + path, headers: { ...type, ...headers } })
    sent.on("response", (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, text }))
      )
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

/** Returns the first event of a stream. */
const firstEvent = ({ port, prefix }: Site, path: string, headers: Readonly<Record<string, string>>) =>
  Effect.promise(async (signal) => {
    const { body } = await fetch(`http://127.0.0.1:${port}${prefix}${path}`, { headers, signal })
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    const { value = "" } = (await reader?.read()) ?? {}
    await reader?.cancel()
    return JSON.parse(value.replace(/^data: /, ""))
  })

/** Exchanges the token for a cookie. */
const enter = (site: Site) =>
  Effect.map(send(site, "POST", "/session", {}, { token: Redacted.value(site.studio.token) }), ({ headers }) => ({
    cookie: String(headers["set-cookie"]).split(";")[0] ?? ""
  }))

const change = { "x-kernai-studio": "1" }

const started = (site: Site, cookie: { readonly cookie: string }) =>
  Effect.gen(function* () {
    const { text } = yield* send(site, "POST", "/api/runs", { ...cookie, ...change }, { input: "Pay Eva." })
    const { runId } = JSON.parse(text)
    // The stream of its events ends once the run waits.
    yield* send(site, "GET", `/api/runs/${runId}/events`, cookie)
    return String(runId)
  })

describe("Studio", () => {
  it.live("admits only pages with the token of this start", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const routes = [
        "/info",
        "/runs",
        "/conversations",
        "/questions",
        "/scenarios",
        "/runs/x/records",
        "/runs/x/export"
      ].map((path) => `/data${path}`)
      for (const route of [
        ...routes,
        "/data/page?server=a&uri=ui://b",
        "/api/runs",
        "/api/runs/x/events",
        "/api/agents"
      ]) {
        assert.strictEqual((yield* send(site, "GET", route)).status, 401, route)
      }
      assert.strictEqual((yield* send(site, "POST", "/session", {}, { token: "guessed" })).status, 401)
      const { headers, status } = yield* send(
        site,
        "POST",
        "/session",
        {},
        { token: Redacted.value(site.studio.token) }
      )
      assert.strictEqual(status, 204)
      assert.match(String(headers["set-cookie"]), /HttpOnly/i)
      assert.match(String(headers["set-cookie"]), /SameSite=Strict/i)
      assert.strictEqual((yield* send(site, "GET", "/data/info", yield* enter(site))).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("refuses requests of foreign pages and names on every route", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const own = [
        "",
        "/questions",
        "/waiting",
        "/overview",
        "/scenarios",
        "/page?server=a&uri=ui://b",
        "/info",
        "/runs"
      ].map((path) => `/data${path}`)
      const ofRun = ["/data/runs/x/records", "/data/runs/x/export", "/api/runs/x/events", "/api/runs/x/media/y"]
      const routes = [
        "/",
        "/page.js",
        "/charts.js",
        "/page.css",
        "/icon.svg",
        ...own.slice(1),
        ...ofRun,
        "/api/runs",
        "/api/agents"
      ]
      for (const route of routes) {
        for (const header of [{ host: "evil.example" }, { origin: "https://evil.example" }]) {
          const { status } = yield* send(site, "GET", route, { ...cookie, ...header })
          assert.strictEqual(status, 403, `${route} ${JSON.stringify(header)}`)
        }
      }
      const changes = ["/session", "/api/runs", "/api/runs/x/answers", "/api/runs/x/cancel", "/data/runs/x/fork"]
      for (const route of changes) {
        const headers = { ...cookie, ...change, origin: "https://evil.example" }
        assert.strictEqual((yield* send(site, "POST", route, headers, {})).status, 403, route)
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses a form, which cannot send the header of the page", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      assert.strictEqual((yield* send(site, "POST", "/api/runs", cookie, { input: "Hi" })).status, 403)
      assert.strictEqual((yield* send(site, "POST", "/data/runs/x/fork", cookie, { revision: 1 })).status, 403)
      assert.deepStrictEqual(JSON.parse((yield* send(site, "GET", "/data/runs", cookie)).text).runs, [])
    }).pipe(Effect.scoped)
  )

  it.live("starts, answers, cancels and forks nothing when it is read-only", () =>
    Effect.gen(function* () {
      const site = yield* serve({ readOnly: true })
      const headers = { ...(yield* enter(site)), ...change }
      const bodies: ReadonlyArray<readonly [string, unknown]> = [
        ["/api/runs", { input: "Hi" }],
        ["/api/runs/x/answers", { answers: [] }],
        ["/api/runs/x/cancel", {}],
        ["/data/runs/x/fork", { revision: 1 }]
      ]
      for (const [route, body] of bodies) {
        assert.strictEqual((yield* send(site, "POST", route, headers, body)).status, 403, route)
      }
      assert.isTrue(JSON.parse((yield* send(site, "GET", "/data/info", headers)).text).readOnly)
    }).pipe(Effect.scoped)
  )

  it.live("sends its page with a policy that lets only its own script run", () =>
    Effect.gen(function* () {
      const site = yield* serve({ path: "/studio" })
      const { headers, text } = yield* send(site, "GET", "")
      const policy = String(headers["content-security-policy"])
      assert.include(policy, "default-src 'none'")
      assert.include(policy, "require-trusted-types-for 'script'")
      assert.include(policy, "frame-ancestors 'none'")
      assert.notInclude(policy, "unsafe")
      assert.include(text, 'src="/studio/page.js"')
      assert.match(Studio.urlOf(site.studio, "http://localhost:1"), /^http:\/\/localhost:1\/studio#token=[\w-]{43}$/)
    }).pipe(Effect.scoped)
  )

  it.live("lists open questions, and refuses the second of two answers", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const [question] = JSON.parse((yield* send(site, "GET", "/data/questions", cookie)).text)
      assert.strictEqual(question.asked, "Pay Eva.")
      assert.deepStrictEqual(yield* firstEvent(site, "/data/waiting", cookie), {
        count: 1,
        asked: [[runId, question.revision]]
      })
      const ofRuns = (runs: string) =>
        Effect.map(send(site, "GET", `/data/questions?${runs}`, cookie), ({ text }) => JSON.parse(text))
      assert.deepStrictEqual(yield* ofRuns(`run=unknown&run=${runId}`), [question])
      assert.deepStrictEqual(yield* ofRuns("run=unknown"), [])
      assert.deepInclude(question, { name: "pay", input: { to: "Eva" }, rootRunId: runId })
      const body = { answers: [{ callId: question.callId, approved: true }] }
      const path = `/api/runs/${runId}/answers`
      assert.strictEqual((yield* send(site, "POST", path, { ...cookie, ...change }, body)).status, 204)
      assert.include([404, 409], (yield* send(site, "POST", path, { ...cookie, ...change }, body)).status)
      assert.deepStrictEqual(JSON.parse((yield* send(site, "GET", "/data/questions", cookie)).text), [])
    }).pipe(Effect.scoped)
  )

  it.live("refuses the answer of the person who started the run, if the question is for others", () =>
    Effect.gen(function* () {
      const others = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { by: { roles: ["operator"] } })))
      const site = yield* serve({}, others)
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const [question] = JSON.parse((yield* send(site, "GET", "/data/questions", cookie)).text)
      const body = { answers: [{ callId: question.callId, approved: true }] }
      const refused = yield* send(site, "POST", `/api/runs/${runId}/answers`, { ...cookie, ...change }, body)
      assert.deepStrictEqual([refused.status, JSON.parse(refused.text).type], [403, "urn:kernai:problem:forbidden"])
    }).pipe(Effect.scoped)
  )

  it.live("stores the name of the person with an answer, and refuses a name that could deceive", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const [question] = JSON.parse((yield* send(site, "GET", "/data/questions", cookie)).text)
      const body = { answers: [{ callId: question.callId, approved: true }] }
      const answerAs = (name: string) =>
        send(site, "POST", `/api/runs/${runId}/answers`, { ...cookie, ...change, "x-kernai-person": name }, body)
      for (const name of ["", "%", "%E2%80%AEadA", "Ada%0A", "Ada%20(root)", "a".repeat(61)]) {
        assert.strictEqual((yield* answerAs(name)).status, 400, name)
      }
      assert.strictEqual((yield* answerAs(encodeURIComponent("Zoë O'Neil"))).status, 204)
      const { text } = yield* send(site, "GET", `/data/runs/${runId}/records`, cookie)
      assert.include(text, `"by":"Zoë O'Neil (studio)"`)
    }).pipe(Effect.scoped)
  )

  it.live("decides who may answer by the caller, whatever name the person gives", () =>
    Effect.gen(function* () {
      const eva = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { by: { callers: ["eva"] } })))
      const site = yield* serve({}, eva)
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const [question] = JSON.parse((yield* send(site, "GET", "/data/questions", cookie)).text)
      const body = { answers: [{ callId: question.callId, approved: true }] }
      const headers = { ...cookie, ...change, "x-kernai-person": "eva" }
      assert.strictEqual((yield* send(site, "POST", `/api/runs/${runId}/answers`, headers, body)).status, 403)
    }).pipe(Effect.scoped)
  )

  it.live("lists the reports of evaluations without their answers, and sends one", () =>
    Effect.gen(function* () {
      const evaluations = yield* folder
      const report = {
        name: "capitals.jsonl",
        ok: false,
        threshold: 0.9,
        startedAt: 1,
        finishedAt: 2,
        attempts: 1,
        passed: 0,
        skipped: 0,
        passRate: 0,
        interval: [0, 0.8],
        scorers: [],
        costUsd: null,
        cases: [{ id: "1", input: "Peru?", attempts: [] }]
      }
      writeFileSync(join(evaluations, "eval_20260101_000000.json"), JSON.stringify(report))
      writeFileSync(join(evaluations, "eval_20260102_000000.json"), "{}")
      const site = yield* serve({ evaluations })
      const cookie = yield* enter(site)
      const { cases: _cases, ...summary } = report
      const read = (path: string) => send(site, "GET", `/data/experiments${path}`, cookie)
      assert.deepStrictEqual(JSON.parse((yield* read("")).text), [{ ...summary, file: "eval_20260101_000000.json" }])
      assert.deepInclude(JSON.parse((yield* read("/eval_20260101_000000.json")).text), { cases: report.cases })
      assert.strictEqual((yield* read("/eval_20260102_000000.json")).status, 400)
      assert.strictEqual((yield* send(site, "GET", "/data/experiments", {})).status, 401)
    }).pipe(Effect.scoped)
  )

  it.live("stores rows of data sets and signed scores with labels, unless it is read-only", () =>
    Effect.gen(function* () {
      const evaluations = yield* folder
      const site = yield* serve({ evaluations })
      const cookie = yield* enter(site)
      const headers = { ...cookie, ...change, "x-kernai-person": "Ada" }
      const row = { set: "refunds", input: "May I?", expected: "Yes.", runId: "run_1" }
      const score = { runId: "run_1", good: false, labels: ["tone", "wrong tool"], note: "too long" }
      assert.strictEqual((yield* send(site, "POST", "/data/sets", headers, row)).status, 200)
      assert.strictEqual((yield* send(site, "POST", "/data/sets", headers, { ...row, set: "../x" })).status, 400)
      assert.strictEqual((yield* send(site, "POST", "/data/scores", headers, score)).status, 200)
      const many = Array.from({ length: 17 }, String)
      assert.strictEqual((yield* send(site, "POST", "/data/scores", headers, { ...score, labels: many })).status, 400)
      const [set] = JSON.parse((yield* send(site, "GET", "/data/sets", cookie)).text)
      assert.deepInclude(set, { name: "refunds", count: 1 })
      const [found] = JSON.parse((yield* send(site, "GET", "/data/scores", cookie)).text)
      const { runId: _, ...kept } = score
      assert.deepInclude(found, { run_id: "run_1", ...kept, by: "Ada (studio)" })
      const closed = yield* serve({ evaluations, readOnly: true })
      const own = { ...(yield* enter(closed)), ...change }
      for (const [path, body] of [["/data/sets", row] as const, ["/data/scores", score] as const]) {
        assert.strictEqual((yield* send(closed, "POST", path, own, body)).status, 403)
        assert.strictEqual((yield* send(site, "POST", path, change, body)).status, 401)
      }
    }).pipe(Effect.scoped)
  )

  it.live("gives runs a tag, lists the runs of a tag, and takes no tag that a filter could not name", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const tag = (change: "add" | "remove", name: string, headers: Readonly<Record<string, string>> = cookie) =>
        Effect.map(
          send(
            site,
            "POST",
            "/data/tags",
            { ...headers, "x-kernai-studio": "1" },
            { change, tag: name, runIds: [runId] }
          ),
          ({ status }) => status
        )
      const tagged = (name: string) =>
        Effect.map(send(site, "GET", `/data/runs?tag=${name}`, cookie), ({ text }) =>
          JSON.parse(text).runs.map(({ tags }: { readonly tags: ReadonlyArray<string> }) => tags)
        )
      assert.strictEqual(yield* tag("add", "urgent"), 200)
      assert.deepStrictEqual(yield* tagged("urgent"), [["urgent"]])
      assert.deepStrictEqual(yield* tagged("other"), [])
      for (const name of ["two words", "", "x".repeat(65)]) assert.strictEqual(yield* tag("add", name), 400)
      assert.strictEqual(yield* tag("remove", "urgent", {}), 401)
      assert.strictEqual(yield* tag("remove", "urgent"), 200)
      assert.deepStrictEqual(yield* tagged("urgent"), [])
    }).pipe(Effect.scoped)
  )

  it.live("compresses what is long for clients that accept it, and nothing for others", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      for (const path of ["/page.js", `/data/runs/${runId}/records`]) {
        const { headers, text } = yield* send(site, "GET", path, { ...cookie, "accept-encoding": "br, gzip;q=0" })
        assert.isUndefined(headers["content-encoding"])
        assert.strictEqual(headers.vary, "accept-encoding")
        const answer = yield* Effect.promise(() =>
          fetch(`http://127.0.0.1:${site.port}${site.prefix}${path}`, { headers: cookie })
        )
        assert.strictEqual(answer.headers.get("content-encoding"), "gzip")
        assert.isBelow(Number(answer.headers.get("content-length")), text.length / 2)
        assert.strictEqual(yield* Effect.promise(() => answer.text()), text)
      }
      const short = yield* send(site, "GET", "/data/scenarios", { ...cookie, "accept-encoding": "gzip" })
      assert.isUndefined(short.headers["content-encoding"])
    }).pipe(Effect.scoped)
  )

  it.live("sends the records of a run after a revision", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const all = JSON.parse((yield* send(site, "GET", `/data/runs/${runId}/records`, cookie)).text)
      assert.strictEqual(all.records.at(-1).revision, all.revision)
      const rest = JSON.parse((yield* send(site, "GET", `/data/runs/${runId}/records?after=3`, cookie)).text)
      assert.deepStrictEqual(rest.records, all.records.slice(3))
      const [line] = JSON.parse((yield* send(site, "GET", "/data/runs?status=waiting&search=eva", cookie)).text).runs
      assert.deepInclude(line, { runId, title: "Pay Eva." })
      const counted = yield* send(site, "GET", "/data/overview?from=0&to=8000000000000&slots=1", cookie)
      assert.deepStrictEqual(
        JSON.parse(counted.text).counts.map(({ count, status }: RunStore.RunCount) => [status, count]),
        [["waiting", 1]]
      )
      assert.strictEqual((yield* send(site, "GET", "/data/overview?from=2&to=1&slots=1", cookie)).status, 400)
      assert.strictEqual((yield* send(site, "GET", "/data/runs/none/records", cookie)).status, 404)
    }).pipe(Effect.scoped)
  )

  it.live("forks a run at a revision and continues the fork", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const forked = yield* send(site, "POST", `/data/runs/${runId}/fork`, { ...cookie, ...change }, { revision: 2 })
      const { runId: forkId } = JSON.parse(forked.text)
      yield* send(site, "GET", `/api/runs/${forkId}/events`, cookie)
      const { records } = JSON.parse((yield* send(site, "GET", `/data/runs/${forkId}/records`, cookie)).text)
      assert.deepInclude(records[0].events[0], { forkedFrom: { runId, revision: 2 } })
      assert.isAbove(records.length, 2)
    }).pipe(Effect.scoped)
  )

  it.live("exports a run as one file without network access", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const { headers, text } = yield* send(site, "GET", `/data/runs/${runId}/export`, cookie)
      assert.match(String(headers["content-disposition"]), /^attachment/)
      assert.include(text, "default-src 'none'")
      assert.notInclude(text, "connect-src")
      assert.include(text, 'data-kind="records"')
      assert.notInclude(text, Redacted.value(site.studio.token))
    }).pipe(Effect.scoped)
  )

  it.live("forks with another question", () =>
    Effect.gen(function* () {
      const site = yield* serve()
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const body = { revision: 2, question: "Pay Max." }
      const forked = yield* send(site, "POST", `/data/runs/${runId}/fork`, { ...cookie, ...change }, body)
      const { runId: forkId } = JSON.parse(forked.text)
      const read = (id: string) => send(site, "GET", `/data/runs/${id}/records?limit=1`, cookie)
      assert.include((yield* read(forkId)).text, "Pay Max.")
      assert.include((yield* read(runId)).text, "Pay Eva.")
    }).pipe(Effect.scoped)
  )

  it.live("lists the questions to begin a chat with, which variants of an agent share", () =>
    Effect.gen(function* () {
      const agents = [agent, ...Studio.variants(agent, { models: ["openai/gpt-5"] })]
      const starters = { clerk: ["Pay Eva."] }
      const site = yield* serve({ agents, starters })
      const { agents: lines } = JSON.parse((yield* send(site, "GET", "/data/info", yield* enter(site))).text)
      assert.deepStrictEqual(
        lines.map((line: { readonly name: string; readonly starters: unknown }) => [line.name, line.starters]),
        [
          ["clerk", ["Pay Eva."]],
          ["clerk@openai/gpt-5", ["Pay Eva."]]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.live("lists the models to play a turn with, and refuses a fork with another one before it copies anything", () =>
    Effect.gen(function* () {
      const site = yield* serve({ models: ["openai/gpt-5", Model.claudeHaiku45, Model.make("own")] })
      const cookie = yield* enter(site)
      const runId = yield* started(site, cookie)
      const { models } = JSON.parse((yield* send(site, "GET", "/data/info", cookie)).text)
      assert.deepStrictEqual(models, ["openai/gpt-5", "anthropic/claude-haiku-4-5-20251001", "own"])
      const page = JSON.parse((yield* send(site, "GET", `/data/runs/${runId}/records`, cookie)).text)
      const prepared: { readonly revision: number } = page.records.find(({ events }: RunState.RunRecord) =>
        events.some(({ type }) => type === "turn_prepared")
      )
      const { revision } = prepared
      const fork = (body: unknown) => send(site, "POST", `/data/runs/${runId}/fork`, { ...cookie, ...change }, body)
      for (const body of [
        { revision, model: "openai/gpt-4o" },
        { revision: revision + 1, model: "own" },
        { revision, messages: [{ at: 7, text: "" }] },
        { revision, results: { other: "" } }
      ]) {
        const { status, text } = yield* fork(body)
        assert.deepStrictEqual([status, JSON.parse(text).type], [400, "urn:kernai:problem:invalid"])
      }
      const { runs } = JSON.parse((yield* send(site, "GET", "/data/runs", cookie)).text)
      assert.lengthOf(runs, 1)
      const forked = yield* fork({ revision, model: "openai/gpt-5" })
      const { runId: forkId } = JSON.parse(forked.text)
      const copied = JSON.parse((yield* send(site, "GET", `/data/runs/${forkId}/records`, cookie)).text).records
      const turn = copied[revision - 1].events.find(({ type }: { readonly type: string }) => type === "turn_prepared")
      assert.deepStrictEqual([turn.model, turn.args.model.provider], ["gpt-5", "openai"])
    }).pipe(Effect.scoped)
  )

  it.live("serves the page of an MCP server in a document without network access", () =>
    Effect.gen(function* () {
      const pages = {
        readPage: (server: string, uri: string) =>
          server === "seats"
            ? Effect.succeed({ uri, mimeType: "text/html", html: "<p>seats</p>", meta: {} })
            : Effect.fail(new KernelError.McpError({ server, reason: "not_found", detail: "no such server" }))
      }
      const site = yield* serve({ pages })
      const cookie = yield* enter(site)
      const { headers, status, text } = yield* send(site, "GET", "/data/page?server=seats&uri=ui://map", cookie)
      assert.strictEqual(status, 200)
      assert.strictEqual(text, "<p>seats</p>")
      const policy = String(headers["content-security-policy"])
      for (const rule of ["sandbox allow-scripts;", "default-src 'none'", "frame-ancestors 'self'"]) {
        assert.include(policy, rule)
      }
      assert.notInclude(policy, "allow-same-origin")
      assert.strictEqual((yield* send(site, "GET", "/data/page?server=none&uri=ui://map", cookie)).status, 404)
    }).pipe(Effect.scoped)
  )

  it("offers variants of an agent by model and dialect", () => {
    const names = Studio.variants(agent, { models: ["scripted", "gpt"], dialects: ["blocks", "tools"] })
    assert.deepStrictEqual(
      names.map(({ dialect, model, name }) => [name, model, dialect]),
      [
        ["clerk@scripted+tools", "scripted", "tools"],
        ["clerk@gpt", "gpt", "blocks"],
        ["clerk@gpt+tools", "gpt", "tools"]
      ]
    )
  })
})
