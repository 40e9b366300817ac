/**
 * What a server says when it refuses a token: where to sign in, and what for.
 */

import * as Context from "effect/Context"

/** Whether somebody is there for whom a person may be asked to allow more. */
export const Attended: Context.Reference<boolean> = Context.Reference<boolean>("kernai/mcp/Attended", {
  defaultValue: () => true
})

/** The parameters of challenges, such as `Bearer resource_metadata="…", scope="…"`: the last counts where they differ. */
export const parametersOf = (...challenges: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const parameters = new Map<string, string>()
  for (const challenge of challenges) {
    for (const [, name = "", quoted, bare = ""] of challenge
      .slice(0, 4096)
      .matchAll(/([a-z_]+)=(?:"([^"]*)"|([^\s",]+))/gi)) {
      parameters.set(name.toLowerCase(), quoted ?? bare)
    }
  }
  return parameters
}

/** The scopes a token lacked, if that is what it was refused for; none when the server does not name them. */
export const lacked = (challenge: string): ReadonlyArray<string> | undefined => {
  const parameters = parametersOf(challenge)
  return parameters.get("error") === "insufficient_scope" ? scopesOf(parameters.get("scope")) : undefined
}

/** The scopes of a list that is written as OAuth does. */
export const scopesOf = (list = ""): ReadonlyArray<string> => list.split(" ").filter((scope) => scope !== "")

/** All scopes of some lists, each once. */
export const union = (...lists: ReadonlyArray<string | undefined>): string =>
  [...new Set(lists.flatMap((list) => scopesOf(list)))].join(" ")
