/** Our stream parts are effect/ai's encoded ones, so that each side can stand in for the other. */
import type { Response } from "effect/ai"
import type * as StreamPart from "../src/StreamPart.ts"

declare const ours: StreamPart.StreamPart
export const theirs: Response.StreamPartEncoded = ours

type Spoken = Extract<Response.StreamPartEncoded, { readonly type: StreamPart.StreamPart["type"] }>
declare const spoken: Spoken

// What a model says through effect/ai has every part ours has, under the same names.
export const types: StreamPart.StreamPart["type"] = spoken.type
export const reasons: StreamPart.FinishReason = (spoken as Extract<Spoken, { readonly type: "finish" }>).reason
