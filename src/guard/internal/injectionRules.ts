/**
 * Finds instructions to a model in texts that should hold data only.
 *
 * A text is compared without invisible characters, in compatible forms and small letters, so that `Ｉｇｎｏｒｅ` is found.
 * A strong rule is enough; of the weak ones, two different must match.
 */

import type { Finding } from "../Detector.ts"

// ---------------------------------------------------------------- rules

const gap = (words: number): string => String.raw`(?:[\s"'*_,-]+\p{L}[\p{L}'’-]*){0,${words}}[\s"'*_,:-]+`
const rule = (...parts: ReadonlyArray<string>): RegExp => new RegExp(parts.join(""), "gu")
const word = (source: string): string => String.raw`(?<![\p{L}\p{N}])(?:${source})(?![\p{L}\p{N}])`

/** Verbs of setting aside, what is set aside, in the order of each language. */
const overrides: ReadonlyArray<RegExp> = [
  rule(
    word("ignore|disregard|forget|override|bypass|discard|neglect|do not follow|don't follow|stop following|overrule"),
    gap(3),
    word(
      "previous|prior|above|earlier|preceding|existing|original|your|system|all|any|former|initial|safety|developer"
    ),
    gap(3),
    word(
      "instructions?|prompts?|rules?|directions?|directives?|guidelines?|orders?|commands?|context|guardrails?|restrictions?|programming|training"
    )
  ),
  rule(
    word("ignore|disregard|forget"),
    gap(2),
    word("everything|all of the above|what you were told|whatever you were told"),
    gap(4),
    word("told|said|before|above|until now|so far|instructed")
  ),
  rule(
    word("ignorieren? sie|ignoriere?|vergessen? sie|vergiss|missachte|missachten sie|verwirf|übergehe|umgehe"),
    gap(3),
    word("anweisung(?:en)?|instruktion(?:en)?|regeln?|vorgaben?|befehle?|systemprompt|richtlinien")
  ),
  rule(
    word(
      "ignore[rz]?|oublie[rz]?|ne tiens? pas compte|ne tenez pas compte|fais abstraction|faites abstraction|contourne[rz]?"
    ),
    gap(4),
    word("instructions?|consignes?|règles?|directives?|ordres")
  ),
  rule(
    word(
      "ignora|ignore|ignorad|olvida|olvide|omite|descarta|desobedece|no hagas caso|haz caso omiso|dimentica|tralascia|scarta|ignori|esqueça|esquece|desconsidere|descarte"
    ),
    gap(4),
    word(
      "instrucciones|indicaciones|reglas|órdenes|directrices|istruzioni|regole|direttive|instruções|regras|ordens|diretrizes"
    )
  ),
  rule(word("negeer|vergeet|sla|omzeil"), gap(4), word("instructies|regels|aanwijzingen|opdrachten")),
  rule(
    word("игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?"),
    gap(4),
    word("инструкци(?:и|й|ю)|указани(?:я|й)|правил(?:а)?|команды")
  ),
  /(?:忽略|无视|忽视|忘记|忘掉|不要理会|請忽略|忽略掉).{0,10}(?:指令|指示|提示词?|规则|規則|说明|命令)/gu,
  /(?:指示|命令|ルール|プロンプト|指令|規則).{0,8}(?:無視|忘れ|従わない|破棄)/gu
]

const forged: ReadonlyArray<RegExp> = [
  /<\|?(?:im_start|im_end|im_sep|endoftext|start_header_id|eot_id|system|user|assistant)\|>/gu,
  /\[\/?inst\]|<<\/?sys>>|<start_of_turn>|<end_of_turn>/gu,
  /<\/?(?:system|system[-_ ]?prompt|instructions?|admin|developer[-_ ]?message|system[-_]override|tool_result|untrusted)>/gu,
  /(?:^|\n)\s{0,4}(?:#{1,4}\s?)?(?:system|assistant|developer)(?:\s?(?:message|prompt|override|note))?\s?:\s{0,3}(?:you |ignore|new |from now|the user|override|your |always |never |important)/gu,
  /\[(?:system|admin|developer)(?: (?:message|override|prompt|note))?\]\s?:?/gu,
  /[\u{e0020}-\u{e007e}]{6,}/gu
]

const ai =
  "ai|a\\.i\\.|llms?|language models?|(?:ai |virtual )?assistants?|chatbots?|(?:ai )?agents?|gpt|chatgpt|claude|gemini|copilot|bots?"

const strong: ReadonlyArray<RegExp> = [
  ...overrides,
  ...forged,
  rule(
    word(
      "reveal|print|show|repeat|output|leak|display|disclose|tell me|summari[sz]e|reply with|respond with|send|include|append|post|quote"
    ),
    gap(4),
    word(
      "system prompt|(?:your|hidden|initial|original|secret) (?:system )?(?:instructions|prompt|rules|configuration)|instructions you were given|prompt above|text above"
    )
  ),
  rule(
    word("you are|you're"),
    gap(1),
    word("now"),
    gap(3),
    word(
      "dan|jailbroken|unrestricted|in developer mode|in debug mode|in maintenance mode|developer mode|free from|no longer bound|no longer an? assistant|root|evil|unfiltered"
    )
  ),
  rule(
    word("enter|enable|activate|switch to|act as"),
    gap(2),
    word("developer mode|dan|jailbreak(?: mode)?|god mode|debug mode|unrestricted mode|an unrestricted|an unfiltered")
  ),
  rule(
    word(
      "attention|note to|notice to|message to|instructions? (?:for|to)|hey|dear|hello|important|if you are|when you are|to any|to the|to all|for any|for the"
    ),
    gap(2),
    word(ai),
    gap(5),
    word(
      "you must|you should|you are required|please (?:call|send|run|execute|forward|delete|transfer|open|visit|reply|respond|ignore|email|rate|recommend|approve)|must (?:call|send|run|execute|forward|delete|transfer|open|visit|reply|respond|ignore|email|rate|recommend|approve|also|first|now)|reading this|processing this|summari[sz]ing this|parsing this"
    )
  ),
  rule(
    word("do not|don't|never|without"),
    gap(1),
    word("tell|mention|inform|reveal|notify|alert|telling|mentioning|informing|notifying|alerting|show|disclose"),
    gap(4),
    word("the user|the human|the customer|the operator|your user|your operator")
  ),
  rule(
    word("send|forward|post|upload|e-?mail|exfiltrate|transmit|leak|submit|copy"),
    gap(4),
    word(
      "conversation|chat history|api keys?|credentials|secrets?|environment variables|system prompt|private keys?|passwords?|access tokens?|session tokens?|\\.env(?: file)?|ssh keys?|contents of (?:the )?(?:inbox|mailbox|repository|database)|customer (?:list|data|records)|address book"
    ),
    gap(6),
    String.raw`(?:to[\s:"'*_,-]+)?(?:https?:\/\/|[\w.+-]{1,64}@|(?:this|the following) (?:url|address|server|webhook))`
  ),
  rule(
    word("schick|schicke|sende|senden sie|leite|envoie|envoyez|envía|envíe|manda|invia|envie|stuur|отправь|перешли"),
    gap(5),
    word(
      "zugangsdaten|passw(?:ort|örter)|schlüssel|gesprächsverlauf|mots? de passe|identifiants|conversation|contraseñas?|credenciales|conversación|credenziali|password|senhas?|credenciais|wachtwoorden|gesprek|пароли|переписку|ключи"
    )
  ),
  rule(
    word("du bist|sie sind|tu es|vous êtes|eres|sei|você é|je bent|ты"),
    gap(1),
    word("jetzt|ab sofort|nun|maintenant|désormais|ahora|adesso|ora|agora|nu|vanaf nu|теперь"),
    gap(4),
    word(
      "ki|modell|assistent|assistant|modèle|ia|asistente|modelo|assistente|modello|uneingeschränkt(?:e[rs]?)?|sans restrictions?|sin restricciones|senza restrizioni|sem restrições|zonder beperkingen|без ограничений|ассистент"
    )
  ),
  rule(
    word(
      "verrate|zeige|gib|nenne|affiche|révèle|montre|muestra|revela|mostra|rivela|mostre|revele|toon|onthul|покажи|раскрой"
    ),
    gap(4),
    word(
      "system-?prompt|systemanweisungen|prompt système|instructions système|prompt del sistema|instrucciones del sistema|prompt di sistema|istruzioni di sistema|prompt do sistema|systeeminstructies|системный промпт|системные инструкции"
    )
  ),
  /(?:系统提示词?|系統提示|システムプロンプト).{0,10}(?:告诉|输出|显示|泄露|打印|教えて|表示|出力|漏)|(?:告诉|输出|显示|泄露|打印|透露).{0,8}(?:系统提示|系統提示)/gu,
  /(?:不要|别|請勿|请勿).{0,4}(?:告诉|告知|通知).{0,2}(?:用户|使用者)|(?:ユーザー).{0,6}(?:知らせない|伝えない|言わない|知らせず)/gu,
  /你现在是.{0,12}(?:不受限制|没有限制|ai|助手|模型)|(?:あなたは今から).{0,20}(?:ai|アシスタント|モデル)/gu
]

const weak: ReadonlyArray<RegExp> = [
  rule(
    word("new|updated|real|actual|revised|additional|your"),
    gap(1),
    word("instructions?|task|objective|goal|orders|directive|priority"),
    String.raw`\s?(?:is|are|:|follow)`
  ),
  rule(
    word(
      "from now on|starting now|henceforth|from this point on|ab jetzt|ab sofort|désormais|à partir de maintenant|a partir de ahora|d'ora in poi|a partir de agora|vanaf nu|с этого момента"
    ),
    ".{0,40}"
  ),
  rule(
    word(
      "you must|you will|you are required to|you have to|you are (?:now )?authori[sz]ed to|du musst|tu dois|vous devez|debes|devi|você deve|je moet|ты должен"
    ),
    gap(2),
    word(
      "immediately|first|now|always|only|also|sofort|zuerst|immédiatement|d'abord|primero|inmediatamente|subito|imediatamente|eerst|сначала"
    )
  ),
  rule(
    word("call|use|invoke|run|execute|trigger"),
    gap(1),
    word("[a-z]+_[a-z_]+|the [`'\"]?[a-z_]+[`'\"]? (?:tool|function|skill|action|command)")
  ),
  rule(
    word(
      "as an? (?:ai|language model|assistant)|dear (?:ai|assistant|model)|(?:ai|llm|assistant|agent|bot)s? (?:instruction|directive|note|command|only)s?|to the (?:ai|model|assistant|agent)|an die ki|für die ki|à l'ia|para la ia|per l'ia|para a ia|voor de ai|для ии"
    )
  ),
  rule(
    word(
      "send|forward|transfer|post|wire|upload|navigate to|visit|open|fetch|überweise|transfère|transfiere|trasferisci|transfira|переведи"
    ),
    gap(6),
    String.raw`(?:https?:\/\/|[\w.+-]{1,64}@|account\b|iban\b)`
  ),
  rule(
    word("delete|erase|wipe|drop|remove|lösche|supprime|borra|elimina|apague|verwijder|удали"),
    gap(1),
    word("all|every|alle|tous|todos|tutti|todas|все"),
    gap(2),
    word(
      "files?|e-?mails?|records?|tables?|data|messages?|backups?|dateien|daten|fichiers|archivos|correos|file|arquivos|bestanden|файлы"
    )
  ),
  rule(
    word(
      "this is (?:a )?(?:an )?(?:authori[sz]ed|official|system|admin|mandatory)|admin(?:istrator)? (?:has )?(?:approved|authori[sz]ed)|pre-?approved by|on behalf of the (?:user|system|administrator)|the user (?:has )?(?:already )?(?:approved|agreed|consented|confirmed)"
    )
  ),
  rule(
    word("respond|reply|answer|antworte|réponds|responde|rispondi|responda|antwoord"),
    gap(1),
    word("only|exactly|just|nur|seulement|uniquement|solo|apenas|alleen|solamente|soltanto"),
    gap(1),
    word("with|mit|avec|con|com|met")
  ),
  /!\[[^\]]{0,80}\]\(https?:\/\/[^)\s]{1,200}[?&][^)\s]{0,60}=[^)\s]{0,200}\)/gu
]

// ---------------------------------------------------------------- search

/** Returns where instructions stand: all matches of strong rules, and of weak rules if at least two of them match. */
export const injectionsIn = (text: string): ReadonlyArray<Finding> => {
  const { compared, places } = comparable(text)
  const matches = (rules: ReadonlyArray<RegExp>) =>
    rules.map((rule) =>
      Array.from(compared.matchAll(rule), ({ 0: match, index }) => [index, index + match.length] as const)
    )
  const certain = matches(strong).flat()
  const hints = matches(weak).filter((found) => found.length > 0)
  const all = hints.length > 1 ? [...certain, ...hints.flat()] : certain
  return all
    .map(([start, end]) => ({
      kind: "injection",
      start: places[start] ?? 0,
      end: places[end] ?? text.length
    }))
    .sort((a, b) => a.start - b.start)
}

/** Returns a text as it is compared, and the place of each of its units in the original. */
const comparable = (text: string): { readonly compared: string; readonly places: ReadonlyArray<number> } => {
  const places: Array<number> = []
  let compared = ""
  let at = 0
  for (const char of text) {
    const folded = invisible.test(char) ? "" : (lookalikes.get(char) ?? char).normalize("NFKC").toLowerCase()
    compared += folded
    for (let unit = 0; unit < folded.length; unit++) places.push(at)
    at += char.length
  }
  return { compared, places }
}

const invisible = /^(?:\p{Default_Ignorable_Code_Point}|[\u200e\u200f\u202a-\u202e])$/u

const lookalikes: ReadonlyMap<string, string> = new Map([["’", "'"]])
