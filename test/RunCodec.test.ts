import { assert, describe, it } from "@effect/vitest"
import { BlockTypes, type Call, Content, Message, RunState, Usage } from "kernai"
import { Array as Arr, Context, Effect, Layer, Result, Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Wire from "../src/internal/store/runWire.ts"
import * as RunCodec from "../src/RunCodec.ts"
import * as Journal from "../src/testing/internal/sampleJournal.ts"
import { cases } from "./support/property.ts"

const fixture = (name: string): ReadonlyArray<string> =>
  fs
    .readFileSync(path.join(import.meta.dirname, "fixtures", name), "utf8")
    .trimEnd()
    .split("\n")

const codec = RunCodec.make()
const decode = (text: string) => Result.getOrThrow(codec.decodeRecord(text))
const encode = (record: RunState.RunRecord) => Result.getOrThrow(RunCodec.encodeRecord(record))
/** A text without its checksum. */
const bare = (text: string) => text.replace(/"sum":"[0-9a-f]{8}",/, "")
const reasonOf = <A>(result: Result.Result<A, { readonly reason: string }>) =>
  Result.isFailure(result) ? result.failure.reason : "read"
const plain = (state: RunState.RunState) => ({ ...state, turns: state.turns, prompt: state.prompt })

/** A run of some turns, and its state in parts as a store writes them. */
const runOf = (turns: number, every = 64) => {
  const run = Journal.begin("run", { context: { a: 1 } })
  const commits = [run.last()]
  const parts: Array<string> = []
  let mark = RunCodec.start
  for (let turn = 1; turn <= turns; turn++) {
    commits.push(...Journal.turn(run, { text: "said ".repeat(60), output: [Content.text("<told> ".repeat(100))] }))
    if (turn % every !== 0) continue
    const { state } = run.last()
    parts.push(Result.getOrThrow(RunCodec.encodeState(state, mark)))
    mark = { turns: turn, prompt: state.prompt }
  }
  return { commits, parts, state: run.last().state, records: commits.map(({ record }) => encode(record)) }
}

describe("a record as text", () => {
  it("decodes every line of its format, and encodes it unchanged (R-9)", () => {
    const lines = fixture("journal-v2.jsonl")
    const records = lines.map(decode)
    assert.deepStrictEqual(
      records.map(encode).map((text) => JSON.parse(bare(text))),
      lines.map((line) => JSON.parse(line))
    )
    for (const record of records) assert.isTrue(RunCodec.isSame(decode(encode(record)), record))
    const types = new Set(records.flatMap((record) => record.events.map((event) => event.type)))
    assert.strictEqual(types.size, 14)
    const state = RunState.fold(records)
    assert.isDefined(state)
    // A later fold may hold more of a turn than a stored state; the fields both have are equal.
    const { turns: written, ...facts } = Result.getOrThrow(codec.decodeState(fixture("state-v2.jsonl")))
    const { turns, ...rest } = plain(state)
    assert.deepStrictEqual(facts, rest)
    for (const [index, turn] of written.entries()) {
      const later = turns[index]
      const completed = turn.completed.map((result, at) => ({ ...later?.completed[at], ...result }))
      assert.deepStrictEqual({ ...later, ...turn, completed }, later)
    }
  })

  it("writes the records of a stored journal as they were written, byte for byte (R-9)", () => {
    const journals = path.join(import.meta.dirname, "fixtures/runs-v2/file")
    const lines = fs
      .readdirSync(journals)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => fs.readFileSync(path.join(journals, name), "utf8").trimEnd().split("\n"))
    assert.isAbove(lines.length, 200)
    for (const line of lines) {
      const { records } = codec.decodeRecords(line)
      if (!Arr.isReadonlyArrayNonEmpty(records)) return assert.fail(line)
      assert.strictEqual(Result.getOrThrow(RunCodec.encodeRecords(records)), line)
    }
  })

  it("keeps media in steering messages, in the record and in the turn (R-8)", () => {
    const run = Journal.begin("run")
    const message: Message.Message = {
      role: "user",
      content: [
        Content.text("look"),
        Content.image({ fileId: "f", mediaType: "image/png" }),
        Content.document({ data: new Uint8Array([1, 2]), filename: "a.bin" })
      ]
    }
    const { record, state } = run.commit("phase", [{ type: "turn_started", turnId: "t", steering: [message] }])
    assert.deepStrictEqual(decode(encode(record)), record)
    const text = Result.getOrThrow(RunCodec.encodeState(state))
    assert.deepStrictEqual(Result.getOrThrow(codec.decodeState([text])), plain(state))
    const misfit = { role: "user", content: [Content.data({ n: Number.NaN })] } as const
    const refused = run.commit("phase", [{ type: "turn_started", turnId: "t", steering: [misfit] }])
    assert.strictEqual(reasonOf(RunCodec.encodeRecord(refused.record)), "invalid")
  })

  it("decodes unusual values as they were given (R-8)", () => {
    const [first, , , , answered] = fixture("journal-v2.jsonl").map(decode)
    assert.deepStrictEqual(first?.events[0], {
      type: "run_started",
      runId: "fixture/1",
      rootRunId: "fixture",
      parentRunId: "fixture",
      taskId: "t 1",
      step: 0,
      depth: 1,
      at: 1763726400000,
      revision: 1,
      agent: "fixture",
      history: 0,
      messages: [{ role: "user", content: [{ type: "text", text: "What is \u0000?" }] }],
      context: {
        odd: {
          "": "",
          nul: "a\u0000b",
          lone: "\ud800",
          zero: -0,
          text: "1e400",
          none: null,
          list: [{}, [], true],
          10: "ten",
          2: "two",
          ["__proto__"]: { polluted: 1 }
        }
      }
    })
    const event = answered?.events[0]
    assert.isTrue(event?.type === "model_completed")
    assert.deepStrictEqual(event?.type === "model_completed" && event.usage, {
      inputTokens: 100,
      cachedTokens: 10,
      outputTokens: 20,
      reasoningTokens: 5
    })
  })

  it("leaves an unknown cost of a child run out, and needs no check for it", () => {
    const run = Journal.begin("run")
    const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 }
    const written = (costUsd: number | undefined) =>
      run.commit("phase", [
        {
          type: "tool_call_completed",
          callId: "c",
          result: { output: [] },
          spent: { ...Usage.expense(usage, costUsd), turns: 1 }
        }
      ]).record
    const unknown = written(undefined)
    assert.isTrue(Wire.isJson(unknown))
    assert.isFalse(Wire.isJson(written(NaN)))
    assert.notInclude(encode(unknown), "costUsd")
    assert.isTrue(RunCodec.isSame(decode(encode(unknown)), unknown))
  })

  it("keeps a negative zero wherever the result of a call may hold one", () => {
    const run = Journal.begin("run")
    const records = Journal.turn(run, { text: "said", output: [Content.text("told")] }).map(({ record }) => record)
    const completed = records.find(({ events }) => events[0]?.type === "tool_call_completed")
    assert.isDefined(completed)
    const [event] = completed.events
    assert.isTrue(event?.type === "tool_call_completed")
    if (event?.type !== "tool_call_completed") return
    const text = Content.decode({ type: "text", text: "told", extra: { weight: -0 } })
    const results: ReadonlyArray<Call.CallOutcome> = [
      { ...event.result, durationMs: -0 },
      { ...event.result, output: [Content.data({ a: -0, b: [-0, { c: -0 }] })] },
      { ...event.result, output: [Result.getOrThrow(text)] },
      { ...event.result, metadata: { a: -0 } },
      { ...event.result, message: { ...Message.user("a"), metadata: { zero: -0 } } }
    ]
    for (const result of results) {
      const record: RunState.RunRecord = { ...completed, events: [{ ...event, result }] }
      assert.isTrue(RunCodec.isSame(decode(encode(record)), record))
      assert.include(encode(record), "-0")
      const [first] = decode(encode(record)).events
      assert.deepStrictEqual(first?.type === "tool_call_completed" && first.result, result)
    }
  })

  it("refuses another format with an error that says what to do, and distinguishes it from damage (R-9)", () => {
    const [line = ""] = fixture("journal-v2.jsonl")
    const refused = (format: number) =>
      codec.decodeRecord(line.replace('"format":2', `"format":${format}`)).pipe(Result.flip, Result.getOrThrow)
    assert.strictEqual(
      refused(4).message,
      "the store failed to read: format 4 is newer than 3, the newest that this version of kernai reads; update kernai"
    )
    assert.match(refused(1).message, /format 1 is older than 2, the oldest that this version of kernai reads/)
    assert.strictEqual(reasonOf(codec.decodeRecord(line.replace('"format":2', '"format":4'))), "format")
    assert.strictEqual(reasonOf(codec.decodeRecord('{"format":99,"whatever":{}}')), "format")
    assert.strictEqual(reasonOf(codec.decodeState(['{"format":4}'])), "format")
    assert.strictEqual(reasonOf(codec.decodeRecord(line.replace('"format":2,', ""))), "corrupt")
    assert.strictEqual(reasonOf(codec.decodeRecord(line.replace('"format":2', '"format":"2"'))), "corrupt")
  })

  it("rejects hostile records (S-10, S-16)", () => {
    const [line = ""] = fixture("journal-v2.jsonl")
    const hostile = [
      "",
      "null",
      "[]",
      "1e999",
      '"format"',
      '{"lc":1,"type":"constructor","id":["child_process"]}',
      '{"$ref":"http://evil/x"}',
      line.replace('"run_started"', '"run_exploded"'),
      line.replace('"run_started"', '"constructor"'),
      line.replace('"op":"phase"', '"op":"__proto__"'),
      line.replace('"revision":1', '"revision":-1'),
      line.replace('"revision":1', '"revision":1e400'),
      line.replace('"createdAt":1763726400000', '"createdAt":1e400'),
      line.replace('"context":{', '"context":[{').replace("}}]}", "}}]}]}"),
      line.replace('"two"', "1e400"),
      line.replace('"role":"user"', '"role":"root"'),
      line.replace('"type":"text"', '"type":"image"'),
      line.replace('"two"', "[".repeat(100_000) + "]".repeat(100_000))
    ]
    for (const text of hostile) {
      assert.notStrictEqual(text, line)
      assert.strictEqual(reasonOf(codec.decodeRecord(text)), "corrupt", text.slice(0, 80))
    }
    assert.isUndefined(Reflect.get({}, "polluted"))
  })

  it("accepts only complete, valid token counts as usage (S-16)", () => {
    const line = fixture("journal-v2.jsonl").find((line) => line.includes('"usage":{')) ?? ""
    const [usage = ""] = /"usage":\{[^}]*\}/.exec(line) ?? []
    const [counted = ""] = /"output_tokens":\d+/.exec(usage) ?? []
    const refused = [
      '"usage":7',
      '"usage":"many"',
      '"usage":{}',
      ...['"output_tokens":"7"', '"output_tokens":1e400', '"output_tokens":null', '"tokens":7'].map((other) =>
        usage.replace(counted, other)
      )
    ]
    assert.isTrue(Result.isSuccess(codec.decodeRecord(line)))
    for (const other of refused) {
      assert.strictEqual(reasonOf(codec.decodeRecord(line.replace(usage, other))), "corrupt", other)
    }
  })

  it("keeps every JSON value of the first messages, and nothing else (R-8)", () => {
    const begun = (message: Message.Message) => {
      const { record } = Journal.begin("run").last()
      const events = record.events.map((event) =>
        event.type === "run_started" ? { ...event, messages: [message] } : event
      )
      return RunCodec.encodeRecord({ ...record, events })
    }
    const texts = (extra: object) => ({ ...Content.text("a"), ...extra })
    const foreign = texts({})
    Object.setPrototypeOf(foreign, { toJSON: () => "b" })
    const refused: ReadonlyArray<Message.Message> = [
      Message.user([texts({ when: Number.NaN })]),
      Message.user([foreign]),
      { ...Message.user("a"), metadata: { half: Infinity } }
    ]
    for (const message of refused) assert.strictEqual(reasonOf(begun(message)), "invalid")
    const taken: ReadonlyArray<Message.Message> = [
      Message.user("a"),
      { ...Message.user("a"), name: "n", metadata: { zero: -0 } },
      Message.user([texts({ own: [1, null] }), Content.text("\ud800")])
    ]
    for (const message of taken) {
      const [event] = decode(Result.getOrThrow(begun(message))).events
      assert.deepStrictEqual(event?.type === "run_started" && event.messages, [message])
    }
  })

  it("distinguishes a result with extra fields of a skill from one that the kernel made (R-8)", () => {
    const record = fixture("journal-v2.jsonl")
      .map(decode)
      .find(({ events }) => events.some(({ type }) => type === "tool_call_completed"))
    assert.isDefined(record)
    const withResult = (more: Partial<Call.CallResult>): RunState.RunRecord => ({
      ...record,
      delta: {},
      events: record.events.flatMap((event) =>
        event.type === "tool_call_completed" ? [{ ...event, result: { ...event.result, ...more } }] : []
      )
    })
    const data: Content.Content = { type: "data", data: { n: NaN } }
    for (const more of [
      { metadata: { n: NaN } },
      { message: { role: "tool", content: [data] } },
      { output: [Content.text("a"), data] }
    ] as const) {
      assert.strictEqual(RunCodec.refusal(withResult(more))?.reason, "invalid")
      assert.strictEqual(reasonOf(RunCodec.encodeRecord(withResult(more))), "invalid")
    }
    assert.isUndefined(RunCodec.refusal(withResult({ output: [Content.text("a")] })))
  })

  it("is one text for all records of an append, with shared fields written once", () => {
    const run = Journal.begin("run", { taskId: "t" })
    const first = run.last()
    const commits = [
      first,
      ...Journal.turn(run),
      run.commit("launch", [], {}, { workerId: "b" }),
      ...Journal.finish(run)
    ]
    const odd = {
      ...first.record,
      revision: commits.length + 1,
      events: first.record.events.map((event) => ({ ...event, runId: "other", taskId: undefined, step: 9 }))
    }
    const last = run.commit("pause", [{ type: "paused", reason: "wait", metadata: null }]).record
    const records: ReadonlyArray<RunState.RunRecord> = [
      ...commits.map(({ record }) => record),
      odd,
      { ...last, revision: odd.revision + 1 }
    ]
    if (!Arr.isReadonlyArrayNonEmpty(records)) return assert.fail("a turn has records")
    const text = Result.getOrThrow(RunCodec.encodeRecords(records))
    assert.deepStrictEqual(codec.decodeRecords(text), { records, fault: undefined })
    assert.strictEqual(text.match(/"format"/g)?.length, 1)
    assert.isBelow(text.length, 0.8 * records.map(encode).join().length)
    for (const record of records) {
      const alone = Result.getOrThrow(RunCodec.encodeRecords([record]))
      assert.strictEqual(alone, encode(record))
      assert.deepStrictEqual(codec.decodeRecords(alone), { records: [record], fault: undefined })
    }
    for (const [broken, count, reason] of [
      ["[]", 0, undefined],
      ["[null]", 0, "corrupt"],
      [text.slice(0, -1), 0, "corrupt"],
      [bare(text).replace('"format":2', '"format":4'), 0, "format"],
      [bare(text).replace('"turn_started"', '"turn_stirred"'), 1, "corrupt"],
      [bare(text).replace('"launch"', '"leap"'), 7, "corrupt"],
      [bare(text), records.length, undefined],
      [text.replace('"createdAt":1', '"createdAt":2'), 0, "corrupt"]
    ] as const) {
      const { fault, records: sound } = codec.decodeRecords(broken)
      assert.strictEqual(fault?.reason, reason, broken.slice(0, 80))
      assert.deepStrictEqual(sound, records.slice(0, count))
    }
  })

  it("equals a record with the same fields in another order", () => {
    const { record } = Journal.begin("run", { context: { a: 1, b: 2 } }).last()
    const { createdAt, ...rest } = record
    const events = record.events.map((event) => ({ ...event, context: { b: 2, a: 1 } }))
    assert.isTrue(RunCodec.isSame(record, { createdAt, ...rest, events } as RunState.RunRecord))
    assert.isFalse(RunCodec.isSame(record, { ...record, workerId: "worker-2" }))
    assert.isFalse(RunCodec.isSame(record, { ...record, delta: { context: { n: NaN } } }))
  })

  it("is rejected when it was truncated at any position", () => {
    for (const line of fixture("journal-v2.jsonl").slice(0, 9)) {
      const step = Math.max(1, Math.floor(line.length / 200))
      for (let end = 0; end < line.length; end += step) {
        assert.strictEqual(reasonOf(codec.decodeRecord(line.slice(0, end))), "corrupt")
      }
    }
  })

  it("writes fields that all its events share once, and others with their event", () => {
    const { record } = Journal.begin("run", { taskId: "t" }).last()
    assert.strictEqual(encode(record).match(/"runId"/g)?.length, 1)
    const odd = { ...record, events: record.events.map((event) => ({ ...event, runId: "other", taskId: undefined })) }
    assert.deepStrictEqual(decode(encode(odd)), odd)
  })

  it.prop(
    "round-trips any JSON in any place (R-8)",
    [Schema.Json, Schema.JsonObject, Schema.String],
    ([json, object, text]) => {
      // V8 13.6 (Node 24) reads every key whose text begins with an escape as `\\` once it has seen that one there.
      if (/[{,]"\\/.test(JSON.stringify([json, object]))) return
      const run = Journal.begin(text, { context: object, agent: text, input: text, taskId: text, workerId: text })
      const parts = [Content.text(text), Content.data(object), Content.toolUse(text, text, object)]
      const commits = [
        run.last(),
        ...Journal.turn(run, { text, input: json, output: [...parts, Content.toolResult(text, parts)] }),
        run.commit("pause", [{ type: "paused", reason: text, metadata: json }], { context: object }),
        run.commit("resume", [], { answers: [{ callId: text, approved: false, input: json }] })
      ]
      const records = commits.map(({ record }) => record)
      assert.deepStrictEqual(
        records.map((record) => decode(encode(record))),
        records
      )
      const state = Result.getOrThrow(codec.decodeState([Result.getOrThrow(RunCodec.encodeState(run.last().state))]))
      assert.deepStrictEqual(state, plain(run.last().state))
    },
    cases()
  )

  it.effect(
    "restores contents of the application's types, and loses nothing when these are not registered (CP-8)",
    () =>
      Effect.gen(function* () {
        const Chart = Schema.Struct({ type: Schema.tag("chart"), points: Schema.Array(Schema.Finite) })
        const chart = Result.getOrThrow(BlockTypes.custom(Chart, Chart.make({ points: [1, 2] })))
        const run = Journal.begin("run")
        const [, , , , , , , told] = Journal.turn(run, { output: [chart] })
        const text = encode(told?.record ?? run.last().record)
        const outputOf = (record: RunState.RunRecord) =>
          record.events.flatMap((event) => (event.type === "tool_call_completed" ? (event.result.output ?? []) : []))
        const context = yield* Layer.build(BlockTypes.layer(Chart))
        const aware = yield* Effect.provideContext(RunCodec.fromContext, Context.pick(BlockTypes.BlockTypes)(context))
        assert.deepStrictEqual(outputOf(Result.getOrThrow(aware.decodeRecord(text))), [chart])
        const [unknown] = outputOf(decode(text))
        assert.deepStrictEqual(unknown, { type: "unknown", wireType: "chart", raw: { type: "chart", points: [1, 2] } })
        assert.strictEqual(encode(decode(text)), text)
      })
  )
})

describe("a state as text", () => {
  it("is the fold of its records, in one part or in many", () => {
    const { commits, parts, records, state } = runOf(130, 13)
    assert.lengthOf(parts, 10)
    assert.deepStrictEqual(Result.getOrThrow(codec.decodeState(parts)), plain(state))
    assert.deepStrictEqual(plain(RunState.fold(records.map(decode)) ?? state), plain(state))
    for (const { state } of commits.slice(0, 40)) {
      const text = Result.getOrThrow(RunCodec.encodeState(state))
      assert.deepStrictEqual(Result.getOrThrow(codec.decodeState([text])), plain(state))
    }
  })

  it("stores no message twice, so parts are smaller than the journal and grow linearly with turns (DR-5)", () => {
    const bytes = (texts: ReadonlyArray<string>) => texts.reduce((sum, text) => sum + text.length, 0)
    const [half, whole] = [runOf(200), runOf(400)]
    for (const count of [(run: typeof half) => run.records, (run: typeof half) => run.records.concat(run.parts)]) {
      assert.isAtMost(bytes(count(whole)) / bytes(count(half)), 2.2)
    }
    assert.isBelow(bytes(whole.parts), bytes(whole.records) / 2)
    const longest = (texts: ReadonlyArray<string>) => Math.max(...texts.map((text) => text.length))
    assert.isAtMost(longest(whole.records) - longest(half.records), 20)
    assert.isAtMost(longest(whole.parts) - longest(half.parts), 1_000)
  })

  it("keeps a conversation that was shortened, reordered, or replaced", () => {
    const run = Journal.begin("run")
    for (let turn = 0; turn < 3; turn++) Journal.turn(run)
    const first = run.last().state
    const mark = { turns: first.turns.length, prompt: first.prompt }
    Journal.turn(run, { compact: "all in short" })
    const { prompt, ...rest } = plain(run.last().state)
    const variants: ReadonlyArray<ReadonlyArray<Message.Message>> = [
      prompt,
      [],
      prompt.toReversed(),
      [...prompt, ...prompt],
      [...first.prompt, ...prompt.slice(-1), ...first.prompt.slice(0, 2)],
      first.prompt.map((message) => ({ ...message })),
      [{ role: "user", content: [Content.text("told")], name: "ada", metadata: { a: -0 } }, ...first.prompt.slice(1)]
    ]
    for (const prompt of variants) {
      const state = { ...rest, prompt }
      const parts = [RunCodec.encodeState(first), RunCodec.encodeState(state, mark)].map(Result.getOrThrow)
      assert.deepStrictEqual(Result.getOrThrow(codec.decodeState(parts)), state)
      const alone = Result.getOrThrow(RunCodec.encodeState(state))
      assert.deepStrictEqual(Result.getOrThrow(codec.decodeState([alone])), state)
    }
  })

  it("is rejected when its parts do not match, or refer beyond the run (S-16)", () => {
    const { parts } = runOf(30, 10)
    const [one = "", two = "", three = ""] = parts
    const misfits = [
      [],
      [two],
      [one, three],
      [one, one],
      [two, one, three],
      [one, two.replace('"from":10', '"from":11')],
      [one, two.replace('"base":21', '"base":22')],
      [one, two.replace('"turns":[10,20]', '"turns":[10,21]')],
      [one, two.replace('"turns":[10,20]', '"turns":[-1,20]')],
      [one.replace('{"turns":[0,10]}', '{"turns":[0,10]},{"turns":[0,10]}')],
      [one.replace('{"input":[0,1]}', '{"input":[0,2]}')],
      [one.replace('{"input":[0,1]}', '{"input":[0,1]},{"input":[0,1]}')]
    ]
    for (const texts of misfits) assert.strictEqual(reasonOf(codec.decodeState(texts)), "corrupt", texts[1]?.slice(-90))
    assert.strictEqual(reasonOf(codec.decodeState(parts)), "read")
  })

  it("encodes the status of a running run as one word", () => {
    for (const { state } of [...runOf(1).commits, ...Journal.finish(Journal.begin("run"))]) {
      const text = Result.getOrThrow(RunCodec.encodeStatus(state.status))
      assert.strictEqual(text.startsWith("{"), state.status.type !== "running")
      assert.deepStrictEqual(Result.getOrThrow(RunCodec.decodeStatus(text)), state.status)
    }
    for (const text of ["", "exploded", "{", '{"type":"paused"}']) {
      assert.strictEqual(reasonOf(RunCodec.decodeStatus(text)), "corrupt")
    }
  })
})
