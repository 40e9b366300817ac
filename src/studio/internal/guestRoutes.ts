/** Routes for the page of end users: their conversations and runs, without tools and journals. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { signatureOf } from "../../Caller.ts"
import { CurrentCaller } from "../../http/Access.ts"
import * as Route from "../../http/CallerRoute.ts"
import { Invalid, NotFound } from "../../http/HttpProblem.ts"
import * as Bodies from "../../http/RunBodies.ts"
import { type CallerRuns, ServedRuns } from "../../http/ServedRuns.ts"
import * as Media from "../../Media.ts"
import { isEnded } from "../../RunStore.ts"
import { json } from "./answerJson.ts"
import { guestEvents, guestRun, mediaIn } from "./guestRun.ts"
import * as KeptLines from "./keptLines.ts"

/** What the routes offer. */
interface Offer {
  /** The folder of evaluations, to which scores are added. */
  readonly evaluations: string | undefined
  /** Whether media in results are shown. */
  readonly media: boolean
}

/** Adds the routes below a path. */
export const add = Effect.fnUntraced(function* (
  path: `/${string}`,
  { evaluations, media: hasMedia }: Offer
): Effect.fn.Return<void, never, HttpRouter.HttpRouter | ServedRuns> {
  const one: `/${string}` = `${path}/runs/:runId`
  const { agents } = yield* ServedRuns
  yield* Route.add("POST", `${path}/runs`, (runs) => ask(runs, agents[0]?.name))
  yield* Route.add("GET", one, (runs) =>
    Effect.gen(function* () {
      const runId = yield* Route.param("runId")
      const state = yield* runs.state(runId)
      const open = state.status.type === "paused" ? yield* runs.questions(runId) : []
      return yield* json(guestRun({ runId, state, open, hasMedia }))
    })
  )
  yield* Route.add("GET", `${one}/events`, events)
  yield* Route.add("GET", `${one}/media/:id`, medium(hasMedia))
  yield* Route.add("POST", `${one}/cancel`, (runs) =>
    Effect.flatMap(Route.param("runId"), (runId) => Effect.andThen(runs.cancel(runId, "stopped in the chat"), json({})))
  )
  yield* Route.add("POST", `${one}/answers`, (runs) =>
    Effect.gen(function* () {
      yield* runs.answer(yield* Route.param("runId"), yield* Route.body(Decisions))
      return yield* json({})
    })
  )
  if (evaluations !== undefined) yield* Route.add("POST", `${one}/score`, score(KeptLines.make(evaluations)))
})

/** Decisions of an end user: about a call as it was shown, so without a changed input. */
const Decisions = Schema.Struct({
  answers: Schema.Array(
    Schema.Union([
      Schema.Struct({
        callId: Schema.String,
        approved: Schema.Boolean,
        values: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
      }),
      Schema.Struct({ callId: Schema.String, output: Schema.Json })
    ])
  )
})

const file = Schema.Struct({ type: Schema.String, base64: Schema.Uint8ArrayFromBase64 })

const Question = Schema.Struct({
  runId: Bodies.RunName,
  /** The runs whose messages come before. */
  before: Schema.Array(Bodies.RunName).check(Schema.isMaxLength(500)),
  text: Schema.String.check(Schema.isNonEmpty()),
  files: Schema.Array(file).check(Schema.isMaxLength(20))
})

const ask = Effect.fnUntraced(function* (runs: CallerRuns, agent: string | undefined) {
  const { before, files, runId, text } = yield* Route.body(Question)
  const history = yield* Effect.forEach(before, (one) => Effect.map(runs.result(one), ({ messages }) => messages))
  const media = yield* Effect.forEach(files, ({ base64, type }) =>
    /^[\w.+-]+\/[\w.+-]+$/.test(type)
      ? runs.putMedia(runId, base64.length, Effect.succeed(Media.fromBytes(base64, type)))
      : Effect.fail(new Invalid({ detail: "a file has no type" }))
  )
  const parts = media.map(({ id, kind, mimeType }) => ({ type: kind, fileId: id, mediaType: mimeType }))
  yield* runs.start({
    runId,
    history: history.flat(),
    input: [{ type: "text", text }, ...parts],
    ...(agent === undefined ? {} : { agent })
  })
  return yield* json({ runId })
})

/** Sends the events of a run from its beginning. A page that has all of an ended run is told not to come again. */
const events = Effect.fnUntraced(function* (runs: CallerRuns) {
  const runId = yield* Route.param("runId")
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { revision, status } = yield* runs.head(runId)
  if (isEnded(status) && Number(headers["last-event-id"] ?? -1) >= revision) {
    return HttpServerResponse.empty({ status: 204 })
  }
  yield* runs.place
  const shown = guestEvents(runId, runs.idOf(runId))
  const frames = runs.follow(runId, { until: "end" }).pipe(
    Stream.map((event) => frame(shown(event))),
    Stream.filter((text) => text !== ""),
    Stream.orElseSucceed(() => ""),
    Stream.encodeText
  )
  return HttpServerResponse.stream(frames, {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
  })
})

const frame = (event: { readonly revision?: number | undefined } | undefined): string =>
  event === undefined
    ? ""
    : `${event.revision === undefined ? "" : `id: ${event.revision}\n`}data: ${JSON.stringify(event)}\n\n`

/**
 * Sends the bytes of a medium that the user sees in the run: the run stores other texts and files as media, too. Its
 * headers prevent scripts in a page that a model or a skill made.
 */
const medium = (hasMedia: boolean) =>
  Effect.fnUntraced(function* (runs: CallerRuns) {
    const runId = yield* Route.param("runId")
    const id = yield* Route.param("id")
    if (!mediaIn(guestRun({ runId, state: yield* runs.state(runId), hasMedia })).has(id)) {
      return yield* new NotFound({ what: "medium", id })
    }
    const { bytes, media } = yield* runs.getMedia(runId, id)
    return HttpServerResponse.uint8Array(bytes, {
      contentType: media.mimeType,
      headers: {
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "private, max-age=31536000, immutable",
        ...(isDrawn(media) ? {} : { "content-disposition": "attachment" })
      }
    })
  })

/** Whether a browser draws a medium as a picture or plays it. Other files are downloads, however they are opened. */
const isDrawn = ({ kind, mimeType }: Media.Media): boolean =>
  kind !== "document" && !mimeType.toLowerCase().startsWith("image/svg")

const NewScore = Schema.Struct({ good: Schema.Boolean })

const score = (kept: KeptLines.KeptLines) =>
  Effect.fnUntraced(function* (runs: CallerRuns) {
    const { good } = yield* Route.body(NewScore)
    const { runId } = yield* runs.head(yield* Route.param("runId"))
    const by = signatureOf(yield* CurrentCaller)
    yield* kept.addScore({ run_id: runId, by, at: yield* Clock.currentTimeMillis, good, note: "" })
    return yield* json({})
  })
