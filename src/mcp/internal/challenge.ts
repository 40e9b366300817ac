/**
 * The challenges of a server that refuses a token, and lists of scopes.
 */

import * as Context from "effect/Context"

/** Whether a person may be asked to allow more. */
export const Attended: Context.Reference<boolean> = Context.Reference<boolean>("kernai/mcp/Attended", {
  defaultValue: () => true
})

/** The parameters of challenges, such as `Bearer resource_metadata="…", scope="…"`. Of two the last one counts. */
export const parametersOf = (...challenges: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const parameter = /([a-z_]+)=(?:"([^"]*)"|([^\s",]+))/gi
  const found = challenges.flatMap((challenge) => [...challenge.slice(0, 4096).matchAll(parameter)])
  return new Map(found.map(([, name = "", quoted, bare = ""]) => [name.toLowerCase(), quoted ?? bare]))
}

/** The scopes a token lacked; undefined when it was refused for another reason. */
export const lacked = (challenge: string): ReadonlyArray<string> | undefined => {
  const parameters = parametersOf(challenge)
  return parameters.get("error") === "insufficient_scope" ? scopesOf(parameters.get("scope")) : undefined
}

export const scopesOf = (list = ""): ReadonlyArray<string> => list.split(" ").filter((scope) => scope !== "")

export const union = (...lists: ReadonlyArray<string | undefined>): string =>
  [...new Set(lists.flatMap((list) => scopesOf(list)))].join(" ")
