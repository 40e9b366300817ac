/** The data of the page of end users. */

import { base, type Decision, followed, get, of, send, server, type Source } from "./source.ts"
import { guest } from "./pageStore.ts"

/** The agent in addresses. Users do not see its name. */
export const anyAgent = "-"

export const guestSource: Source = {
  ...server,
  info: async () => ({
    readOnly: false,
    scenarios: false,
    evaluations: guest.value?.canScore === true,
    agents: [{ name: anyAgent, model: "", dialect: "" }],
    models: [],
    inputs: {}
  }),
  conversations: async (search, after) => {
    const page = await server.conversations(search, after)
    return { ...page, lines: page.lines.map((line) => ({ ...line, agent: anyAgent })) }
  },
  chatRun: (runId) => get(`/data${of(runId)}`),
  ask: async ({ before, files, runId, text }) => {
    const sent = await Promise.all(files.map(async (file) => ({ type: file.type, base64: await base64Of(file) })))
    await send("/data/runs", { runId, before, text, files: sent })
  },
  mediaUrl: (runId, mediaId) => `${base()}/data${of(runId)}/media/${encodeURIComponent(mediaId)}`,
  answer: async (runId: string, decision: Decision) =>
    void (await send(`/data${of(runId)}/answers`, { answers: [decision] })),
  cancel: async (runId) => void (await send(`/data${of(runId)}/cancel`, {})),
  followWaiting: () => () => undefined,
  scores: async () => [],
  score: async ({ good, runId }) => void (await send(`/data${of(runId)}/score`, { good })),
  follow: (runId, _, onEvent, onLink) => followed(`/data${of(runId)}/events`, onEvent, onLink)
}

const base64Of = async (file: File): Promise<string> => {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let text = ""
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(text)
}
