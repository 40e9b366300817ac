/** The card of a served agent, and the refusal of calls that need what the card does not promise. */

import { isJsonObject, type Json, type JsonObject, jsonObject } from "../../kit/json.ts"
import * as Push from "./a2aPushCalls.ts"
import type { RpcError } from "./a2aReply.ts"
import * as Replies from "./a2aReply.ts"
import type { Call } from "./a2aRequest.ts"
import { isOf } from "./a2aWire.ts"

/** The facts about an agent that its card shows. */
interface Facts {
  readonly name: string
  readonly description: string
  readonly url: string
  readonly pushNotifications: boolean
}

/** Creates the card of an agent. The fields of the host replace the others, except for the push notifications. */
export const cardOf = (
  { description, name, pushNotifications, url }: Facts,
  { capabilities, ...fields }: JsonObject = {}
): JsonObject => ({
  name,
  description,
  version: "1.0.0",
  supportedInterfaces: [
    { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" }
  ],
  // For clients of version 0.3.
  protocolVersion: "0.3.0",
  url,
  preferredTransport: "JSONRPC",
  capabilities: { streaming: true, ...jsonObject(capabilities), pushNotifications },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: name, name, description, tags: [] }],
  ...fields
})

/** What a server supports, as far as calls are checked against it. */
export interface Supported {
  readonly streaming: boolean
  readonly pushNotifications: boolean
  readonly extendedAgentCard: boolean
  /** The URIs of extensions that every client must support. */
  readonly requiredExtensions: ReadonlyArray<string>
  /** The media types of files in messages. Undefined where the host names none, and any may be sent. */
  readonly inputModes: ReadonlyArray<string> | undefined
}

/** Returns what the fields of the host promise. */
export const supportedBy = (fields: JsonObject = {}, pushNotifications: boolean): Supported => {
  const { extendedAgentCard, extensions, streaming } = jsonObject(fields["capabilities"])
  const modes = fields["defaultInputModes"]
  const skillModes = listOf(fields["skills"]).flatMap((skill) => listOf(jsonObject(skill)["inputModes"]))
  return {
    streaming: streaming !== false,
    pushNotifications,
    extendedAgentCard: extendedAgentCard === true,
    requiredExtensions: listOf(extensions)
      .map(jsonObject)
      .flatMap(({ required, uri }) => (required === true && typeof uri === "string" ? [uri] : [])),
    inputModes: modes === undefined ? undefined : [...listOf(modes), ...skillModes].filter(isText)
  }
}

/** Returns the error for a call that needs what is not supported. */
export const refusalOf = (
  supported: Supported,
  call: Call,
  headers: { readonly [name: string]: string | undefined }
): RpcError | undefined => {
  const version = headers["a2a-version"] ?? ""
  // The method names differ between versions, so a client without the header is also understood.
  if (version !== "" && !isOf(version, call.version)) return Replies.otherVersion
  const known = new Set((headers["a2a-extensions"] ?? "").split(",").map((uri) => uri.trim()))
  const missing = supported.requiredExtensions.find((uri) => !known.has(uri))
  if (missing !== undefined) return { code: -32008, message: `The client must support the extension ${missing}.` }
  if (!supported.pushNotifications && Push.isNeeded(call)) return Replies.noPush
  if (!supported.streaming && streams.has(call.method)) return { code: -32004, message: "Streams are not supported." }
  if (call.method === "GetExtendedAgentCard") {
    const message = "There is no extended agent card."
    return { code: supported.extendedAgentCard ? -32007 : -32004, message }
  }
  const type = supported.inputModes === undefined ? undefined : unsupportedIn(call, supported.inputModes)
  return type === undefined ? undefined : { code: -32005, message: `Files of type ${type} are not supported.` }
}

const streams: ReadonlySet<string> = new Set(["SendStreamingMessage", "SubscribeToTask"])

/** Returns the type of a file in a message that no mode includes. */
const unsupportedIn = ({ params }: Call, modes: ReadonlyArray<string>): string | undefined =>
  listOf(jsonObject(jsonObject(params)["message"])["parts"])
    .filter(isJsonObject)
    .filter(({ raw, url }) => raw !== undefined || url !== undefined)
    .map(({ mediaType }) => (isText(mediaType) ? mediaType : "application/octet-stream"))
    .map((type) => type.split(";", 1).join("").trim().toLowerCase().slice(0, 100))
    .find((type) => !modes.some((mode) => mode === "*/*" || mode === type || mode === type.replace(/\/.*/, "/*")))

const listOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

const isText = (value: Json | undefined): value is string => typeof value === "string"
