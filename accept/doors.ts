/**
 * The promises of the doors: who may see and answer, refused requests, and protocols as their clients speak them.
 */
import { Effect, Layer, Option, Redacted } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "../src/index.ts"
import { Access, HttpKernel } from "../src/http/index.ts"
import { MockProvider } from "../src/testing/index.ts"
import { counted, failures, type Line, ofFiles, tested, vitest } from "./support.ts"

/** The verbs of the HTTP door that name a run. */
const verbs = [
  ["GET", ""],
  ["GET", "/events"],
  ["GET", "/questions"],
  ["GET", "/result"],
  ["GET", "/media/media_0"],
  ["POST", "/answers", { answers: [] }],
  ["POST", "/cancel", {}]
] as const

const fewest = 5_000

/** Asks with every verb for runs of another caller, by their own names and in forms that a store could misread. */
const walled = async (): Promise<Line> => {
  const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })
  const KernelLive = Kernel.layer.pipe(
    Layer.provide([
      MockProvider.layerOf(MockProvider.make().onCall(() => "<final>A secret.</final>")),
      SkillRegistry.layer(),
      ProtocolRegistry.layer()
    ]),
    Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
  )
  const access = Access.bearer((token) => Effect.succeed(Option.some({ id: Redacted.value(token) })))
  const { dispose, handler } = HttpKernel.toWebHandler(
    Layer.provide(HttpKernel.layer({ agents: [agent], maySee: () => Effect.succeed(false) }), [KernelLive, access])
  )
  const send = (token: string, method: string, path: string, body?: object) =>
    handler(
      new Request(`http://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )
  for (let run = 0; run < 50; run++) await send("alice", "POST", "/runs", { input: "Tell.", runId: `r${run}` })
  let [sent, leaked] = [0, 0]
  for (let run = 0; sent < fewest; run = (run + 1) % 50) {
    for (const id of [`alice~r${run}`, `r${run}`, `bob~alice~r${run}`, `ALICE~r${run}`, `./alice~r${run}`]) {
      for (const [method, part, body] of verbs) {
        const response = await send("bob", method, `/runs/${encodeURIComponent(id)}${part}`, body)
        const text = await response.text()
        sent++
        if (response.status !== 404 || text.includes("secret")) leaked++
      }
    }
  }
  const own = await send("alice", "GET", "/runs/r0")
  await dispose()
  return {
    line: `${fewest} requests for the runs of another caller get nothing`,
    pass: leaked === 0 && own.status === 200,
    figure: `${leaked} of ${sent} got something`
  }
}

/** How long callers wait beside one whose runs never end, on each kind of store. */
const fair = (line: string, files: ReadonlyArray<string>): Line => {
  const ran = vitest(files)
  const ratios = new Map<string, number>()
  for (const [, store = "", ratio] of ran.stdout.matchAll(/fairness on (\w+): .* ratio ([\d.]+)/g)) {
    ratios.set(store, Number(ratio))
  }
  return {
    line,
    pass: ran.status === 0 && ratios.size === 4,
    figure: [...ratios].map(([store, ratio]) => `${store} ${ratio}`).join(", ") + failures(ran)
  }
}

/** A test whose figure is the line that it logs after a word. */
const logged = (line: string, file: string, word: string): Line =>
  ofFiles(
    (line, files) => {
      const ran = vitest(files)
      const figure = new RegExp(`${word}: (.*)`).exec(ran.stdout)?.[1]
      return { line, pass: ran.status === 0 && figure !== undefined, figure: `${figure ?? ""}${failures(ran)}` }
    },
    line,
    [file]
  )

export const doors = async (): Promise<ReadonlyArray<Line>> => [
  await walled(),
  ofFiles(tested, "a question is answered by those whom its policy admits, never by the one who started the run", [
    "test/durable/answerers.test.ts",
    "test/http/answerers.test.ts",
    "test/cli/answerers.test.ts",
    "test/studio/Studio.test.ts"
  ]),
  ofFiles(tested, "forms reach pages, their values are decoded, and plain text answers", ["test/http/forms.test.ts"]),
  ofFiles(tested, "free ids, edited and repeated messages, and refused requests that start nothing", [
    "test/http/protocolIds.test.ts"
  ]),
  ofFiles(tested, "three doors and a studio in 24 orders admit only their own callers", [
    "test/http/severalDoors.test.ts"
  ]),
  counted(
    "one rule refuses forged requests at every door; proxies and ids of callers that cannot be stored are refused",
    ["test/forgeries.test.ts"],
    "forgeries",
    36 * 7
  ),
  ofFiles(tested, "agent cards name configured addresses, and clusters keep to their own databases", [
    "test/http/A2a.test.ts",
    "test/cluster/databases.test.ts"
  ]),
  ofFiles(
    tested,
    "runs carry the tenant, roles and labels of their caller, and four stores and every list filter by them",
    [
      "test/Caller.test.ts",
      "test/durable/tenants.test.ts",
      "test/RunStore.test.ts",
      "test/file/FileRunStore.test.ts",
      "test/sql/SqlRunStore.test.ts",
      "test/sql/PgRunStore.test.ts",
      "test/http/Access.test.ts",
      "test/cli/tenants.test.ts",
      "test/studio/studioLists.test.ts"
    ]
  ),
  ofFiles(
    tested,
    "hooks and middleware of several layers combine, and a memory of a tenant is closed to the models of others",
    ["test/Hooks.test.ts", "test/kernel/references.test.ts", "test/Memory.test.ts"]
  ),
  ofFiles(tested, "a budget that two processes share is spent exactly, in SQLite and PostgreSQL", [
    "test/BudgetStore.test.ts",
    "test/sql/SqlBudgetStore.test.ts"
  ]),
  ofFiles(tested, "a page of useChat that is reloaded has the message that it had live", [
    "test/http/uiReload.test.ts"
  ]),
  ofFiles(tested, "PostgreSQL behind a pooler, over TLS, with two roles and two schemas; SQLite that is read-only", [
    "test/sql/pooler.test.ts",
    "test/sql/postgresTls.test.ts",
    "test/sql/roles.test.ts",
    "test/cli/readOnlyStore.test.ts"
  ]),
  ofFiles(tested, "callers and tenants take turns for the places of a worker, and wait in bounded numbers", [
    "test/worker/fairness.test.ts",
    "test/durable/waitingRuns.test.ts"
  ]),
  ofFiles(fair, "beside 1,000 runs of a caller that never end, 20 others wait at most twice as long (p95)", [
    "test/worker/fairStores.test.ts"
  ]),
  ofFiles(tested, "pages of AG-UI see what subagents do and signed reasoning, and open their threads again", [
    "test/http/agSubagents.test.ts",
    "test/http/agThread.test.ts"
  ]),
  ofFiles(tested, "uploads are received in bounded numbers, go to the media store, and leave nothing in memory", [
    "test/http/uploads.test.ts"
  ]),
  logged("64 uploads of 16 MiB at once need less than 100 MiB of heap", "test/http/uploadMemory.test.ts", "uploads"),
  logged(
    "2,000 idle streams, 600 that leave at once and a server that closes",
    "test/http/manyStreams.test.ts",
    "streams"
  ),
  ofFiles(tested, "files that a message names are fetched from public hosts alone, by the address that is dialled", [
    "test/http/fetchedMedia.test.ts"
  ]),
  ofFiles(tested, "A2A over REST, and files as parts, with the client of the protocol", ["test/http/a2aRest.test.ts"]),
  ofFiles(
    tested,
    "the trace of a caller goes through the door, workers, resumes, schedules and clusters, to agents and servers",
    ["test/traces.test.ts", "test/cluster/traces.test.ts"]
  ),
  ofFiles(tested, "tools that a page or another service runs, over useChat, AG-UI and A2A", [
    "test/http/external.test.ts",
    "test/http/agExternal.test.ts"
  ]),
  ofFiles(tested, "errors of A2A have a code and a reason", ["test/http/a2aErrors.test.ts"]),
  ofFiles(tested, "what the specification of A2A 1.0 asks of servers, by its sections, over JSON-RPC and REST", [
    "test/http/a2aConformance.test.ts"
  ]),
  ofFiles(tested, "push notifications of A2A reach public hosts alone, and continue after a restart", [
    "test/http/a2aPush.test.ts"
  ])
]
