/** Errors of the protocol, which the other side gets as a JSON-RPC error. */

import * as Data from "effect/Data"

/** A request failed, here or in the client. */
export class AcpProblem extends Data.TaggedError("AcpProblem")<{
  readonly code: number
  readonly message: string
}> {}

export const parseError = () => new AcpProblem({ code: -32_700, message: "the line is no JSON" })

export const invalidRequest = (message: string) => new AcpProblem({ code: -32_600, message })

export const unknownMethod = () => new AcpProblem({ code: -32_601, message: "there is no such method" })

export const invalidParams = (message: string) => new AcpProblem({ code: -32_602, message })

export const failed = (message: string) => new AcpProblem({ code: -32_603, message })

export const notFound = (message: string) => new AcpProblem({ code: -32_002, message })

export const requestCancelled = () => new AcpProblem({ code: -32_800, message: "the request was cancelled" })
