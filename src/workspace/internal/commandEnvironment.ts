/**
 * The environment of commands: a few variables of the host, and answers for programs that would ask a person.
 */

/** Returns the variables of a command. Nothing else of the host's environment reaches it. */
export const environmentOf = (
  host: { readonly [name: string]: string | undefined },
  added: { readonly [name: string]: string } = {}
): { readonly [name: string]: string } => ({
  ...Object.fromEntries(inherited.flatMap((name) => (host[name] === undefined ? [] : [[name, host[name]]]))),
  TERM: "dumb",
  NO_COLOR: "1",
  CI: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  ...added
})

const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"]
