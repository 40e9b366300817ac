/**
 * A server of llama.cpp with the wire format of its own one: Chat Completions as a stream, constrained by `grammar`.
 *
 * It answers one request after another, on a port of this computer that the system chooses.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { getLlama, LlamaGrammarEvaluationState, LlamaLogLevel } from "node-llama-cpp"

/** The part of a request that counts here. */
interface Asked {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: string }>
  readonly grammar?: string
  readonly seed?: number
  readonly temperature?: number
  readonly max_tokens?: number
}

const bodyOf = async (request: IncomingMessage): Promise<Asked> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part)
  return JSON.parse(Buffer.concat(parts).toString())
}

const refuse = (response: ServerResponse, status: number, message: string) => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ error: { code: status, message, type: "invalid_request_error" } }))
}

/** Loads a model and serves it; `close` frees both. */
export const serve = async (modelPath: string) => {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    maxThreads: 1
  })
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: 8_192, batchSize: 512, threads: 1 })
  const sequence = context.getSequence()

  const answer = async (asked: Asked, response: ServerResponse) => {
    const grammar = asked.grammar === undefined ? undefined : await llama.createGrammar({ grammar: asked.grammar })
    const prompt = model.tokenize(asked.messages.map(({ content, role }) => `${role}: ${content}\n`).join(""))
    await sequence.clearHistory()
    response.writeHead(200, { "content-type": "text/event-stream" })
    const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`)
    const choice = (delta: object, finish_reason: string | null) =>
      send({ object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })
    const written: Array<(typeof prompt)[number]> = []
    let text = ""
    let reason = "stop"
    const tokens = sequence.evaluate(prompt, {
      temperature: asked.temperature ?? 1,
      ...(asked.seed === undefined ? {} : { seed: asked.seed }),
      ...(grammar === undefined ? {} : { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) })
    })
    for await (const token of tokens) {
      written.push(token)
      const whole = model.detokenize(written)
      choice({ content: whole.slice(text.length) }, null)
      text = whole
      if (written.length < (asked.max_tokens ?? 1_024)) continue
      reason = "length"
      break
    }
    choice({}, reason)
    send({ choices: [], usage: { prompt_tokens: prompt.length, completion_tokens: written.length } })
    response.end("data: [DONE]\n\n")
  }

  // One request at a time: there is one sequence.
  let queue = Promise.resolve()
  const server = createServer((request, response) => {
    queue = queue.then(async () => {
      try {
        await answer(await bodyOf(request), response)
      } catch (error) {
        refuse(response, 400, error instanceof Error ? error.message : String(error))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("the server has no port")
  return {
    baseUrl: `http://127.0.0.1:${address.port}/v1`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await llama.dispose()
    }
  }
}
