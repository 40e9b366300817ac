/**
 * The promises about models: what a vendor said, what a model can take, and what it costs.
 */
import { type Line, ofFiles, tested } from "./support.ts"

export const models = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(tested, "the vendor's own words reach the developer, of every adapter, and no model (synthetic refusals)", [
    "test/provider/vendorWords.test.ts"
  ]),
  ofFiles(tested, "replies that are cut count what was reported and what arrived", ["test/provider/cutUsage.test.ts"]),
  ofFiles(tested, "media both ways: what each of five formats is sent, and what a model makes", [
    "test/provider/media.test.ts"
  ]),
  ofFiles(tested, "every state of random conversations is a request that each adapter's format takes", [
    "test/property/conversation.test.ts",
    "test/property/responses.test.ts"
  ]),
  ofFiles(tested, "OpenAI over Responses: encrypted reasoning goes back to its model, in its place (synthetic)", [
    "test/provider/openAiResponses.test.ts"
  ]),
  ofFiles(
    tested,
    "hosted tools of three vendors: offered as the policy allows, in events, journal and cost (synthetic)",
    ["test/provider/HostedTools.test.ts"]
  ),
  ofFiles(tested, "recorded and synthetic replies of every format read the same, however the network cuts them", [
    "test/provider/cassettes.test.ts"
  ]),
  ofFiles(tested, "ProviderSuite passes six formats over recorded and synthetic replies, and finds eight mistakes", [
    "test/testing/ProviderSuite.test.ts"
  ]),
  ofFiles(tested, "500 skills: a prompt under 8 KB, the right one found in 50 of 50 cases, in blocks and natively", [
    "test/internal/skill/skillSearch.test.ts",
    "test/internal/loop/skillOffer.test.ts"
  ]),
  ofFiles(tested, "scenario matrix --dialects: success, turns and tokens per model, and the choice as data", [
    "test/cli/dialectChoice.test.ts",
    "test/cli/runScenarios.test.ts"
  ]),
  ofFiles(tested, "Resilience.on: retries around the first word, fallback, reads, rate, circuit; off by one word", [
    "test/provider/resilienceOn.test.ts"
  ]),
  ofFiles(tested, "the cache forecast equals a simulated vendor on 12,000 prompts of 1,000 random conversations", [
    "test/internal/prompt/promptCache.test.ts"
  ]),
  ofFiles(tested, "caching by default: marks, writes and reads in usage and cost, what was lost and why", [
    "test/provider/caching.test.ts"
  ]),
  ofFiles(tested, "the catalogue has its form and dated sources; doctor and registry agree", [
    "test/internal/words/catalogue.test.ts"
  ]),
  ofFiles(tested, "Provider.forbidReal: no request of any adapter is sent", ["test/provider/forbidReal.test.ts"])
]
