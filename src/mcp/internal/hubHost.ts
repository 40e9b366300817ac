/** Answers the requests of the servers of a hub: by the handler of the application, otherwise by the calling run. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { SamplingRefused } from "../../KernelError.ts"
import type { CallScope, Reply } from "../../Skill.ts"
import type { McpServer } from "../McpConfig.ts"
import type { Host } from "../McpConnection.ts"
import type { Elicit } from "../McpHub.ts"

/** A handler and its maximum time. */
export interface Attendant {
  readonly elicit: Elicit | undefined
  readonly patience: Duration.Duration
}

/** The channels of a skill or a protocol for questions. */
export type Asked = Partial<Pick<CallScope, "ask" | "sample" | "runId">>

const declined: Reply = { _tag: "Declined", reason: "nobody can be asked" }

/** Creates the host of one call, without the functions that the server may not use. */
export const make = (
  { elicitation, name, sampling }: McpServer,
  { elicit }: Attendant,
  { ask, sample }: Asked
): Host => {
  let calls = 0
  return {
    ...(elicitation
      ? {
          elicit: (asking) => {
            const said = { ...asking, message: `MCP server '${name}' asks: ${asking.message}` }
            if (elicit !== undefined) return elicit(said, name)
            return ask === undefined ? Effect.succeed(declined) : ask({ ...said, name: `mcp_${name}/elicitation` })
          }
        }
      : {}),
    ...(sampling === undefined
      ? {}
      : {
          sample: (sent) => {
            if (sample === undefined) return Effect.fail(refused("the call belongs to no run"))
            if (++calls > sampling.calls) return Effect.fail(refused("the server asked the model too often"))
            const maxTokens = Math.min(sent.maxTokens, sampling.maxTokens)
            return sample({ ...sent, maxTokens, name: `mcp_${name}/sampling` })
          }
        })
  }
}

const refused = (detail: string) => new SamplingRefused({ reason: "denied", detail })

/** Returns the time that a call may wait for the answers of a person or a model. */
export const patienceOf = ({ elicitation, sampling }: McpServer, { elicit, patience }: Attendant): Duration.Duration =>
  Duration.sum(
    elicitation && elicit !== undefined ? patience : Duration.zero,
    Duration.minutes(sampling === undefined ? 0 : sampling.calls)
  )
