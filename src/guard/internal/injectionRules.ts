/** Patterns of instructions to a model, in several languages, for texts that `comparable` has made. */

import { plainLetters } from "./comparableText.ts"

const gap = (words: number): string => String.raw`(?:[\s"'*_,-]+[\p{L}\p{N}][\p{L}\p{N}'-]*){0,${words}}[\s"'*_,:-]+`
const rule = (...parts: ReadonlyArray<string>): RegExp => new RegExp(plainLetters(parts.join("")), "gu")
const word = (source: string): string => String.raw`(?<![\p{L}\p{N}])(?:${source})(?![\p{L}\p{N}])`

/** An order that is not denied: neither `never forget` nor `vergiss nicht`. */
const order = (source: string): string =>
  String.raw`(?<!(?:(?:not|n't|never|ne|no|non|nao|не|nie|niet)\s|n'))${word(source)}(?!\s(?:nicht|pas|niet|not)(?!\p{L}))`

/** Verbs of setting aside, what is set aside, in the order of each language. */
const overrides: ReadonlyArray<RegExp> = [
  rule(
    order("ignore|disregard|forget|override|bypass|discard|neglect|do not follow|don't follow|stop following|overrule"),
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
    order("ignore|disregard|forget"),
    gap(2),
    word("everything|all of the above|what you were told|whatever you were told"),
    gap(4),
    word("told|said|before|above|until now|so far|instructed")
  ),
  rule(
    order("ignorieren? sie|ignoriere?|vergessen? sie|vergiss|missachte|missachten sie|verwirf|übergehe|umgehe"),
    gap(3),
    word("anweisung(?:en)?|instruktion(?:en)?|regeln?|vorgaben?|befehle?|systemprompt|richtlinien")
  ),
  rule(
    order(
      "ignore[rz]?|oublie[rz]?|ne tiens? pas compte|ne tenez pas compte|fais abstraction|faites abstraction|contourne[rz]?"
    ),
    gap(4),
    word("instructions?|consignes?|règles?|directives?|ordres")
  ),
  rule(
    order(
      "ignora|ignore|ignorad|olvida|olvide|omite|descarta|desobedece|no hagas caso|haz caso omiso|dimentica|tralascia|scarta|ignori|esqueça|esquece|desconsidere|descarte"
    ),
    gap(4),
    word(
      "instrucciones|indicaciones|reglas|órdenes|directrices|istruzioni|regole|direttive|instruções|regras|ordens|diretrizes"
    )
  ),
  rule(order("negeer|vergeet|sla|omzeil"), gap(4), word("instructies|regels|aanwijzingen|opdrachten")),
  rule(
    order("игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?"),
    gap(4),
    word("инструкци(?:и|й|ю)|указани(?:я|й)|правил(?:а)?|команды")
  ),
  rule(String.raw`(?:忽略|无视|忽视|忘记|忘掉|不要理会|請忽略|忽略掉).{0,10}(?:指令|指示|提示词?|规则|規則|说明|命令)`),
  rule(String.raw`(?:指示|命令|ルール|プロンプト|指令|規則).{0,8}(?:無視|忘れ|従わない|破棄)`),
  rule(
    order("zignoruj(?:cie)?|ignoruj(?:cie)?|zapomnij(?:cie)?|pomiń(?:cie)?"),
    gap(4),
    word("polece(?:nia|niach|ń)|instrukcj(?:e|ach|i)|zasad(?:y|ach)|reguł(?:y|ach)?|wytyczn(?:e|ych)")
  ),
  rule(
    order("drop|skip|cancel|abandon|set aside|put aside|ignore|disregard|forget"),
    gap(1),
    word("(?:the|your) user's|what (?:the|your) user"),
    gap(2),
    word("requests?|questions?|task|instructions?|wish(?:es)?|said|wants?|wanted|asks|asked|says")
  ),
  rule(
    word("instead of|rather than|whatever|no matter what|regardless of what"),
    gap(1),
    word("the user|your user|you were|you have been|you are"),
    gap(1),
    word("asks|asked|wants|wanted|told|said|instructed|requested")
  ),
  rule(
    order("set aside|put aside|abandon|give up|suspend|reset|wipe|erase|replace your own"),
    gap(0),
    word("(?:(?:all|all of) )?your(?: own)?|rules|guidelines|instructions"),
    gap(2),
    word("instructions|rules|guidelines|restrictions|policy|policies|programming|training|memory|safeguards|with|by")
  ),
  rule(
    word("instructions|rules|directives|guidelines|everything"),
    gap(1),
    word("you (?:were|have been|have|got|received|had)"),
    gap(6),
    word(
      "no longer (?:apply|applies|hold|holds|count|counts|valid)|(?:are|is) (?:now )?(?:outdated|void|obsolete|superseded|suspended|invalid)"
    )
  ),
  rule(
    word("(?:obigen|bisherigen|vorherigen|früheren) (?:anweisungen|regeln|vorgaben|instruktionen)"),
    gap(2),
    word("nicht mehr|ungültig|aufgehoben|hinfällig")
  ),
  rule(
    order("vergiss|ignoriere?|vergesst|vergessen sie|ignorieren sie"),
    String.raw`\s{1,3}alles,?\s{1,3}was`,
    gap(5),
    word("gesagt|aufgetragen|angewiesen|vorher|bisher|zuvor|oben")
  ),
  rule(
    order("oublie[sz]?|ignore[sz]?|ne tiens? pas compte|ne tenez pas compte"),
    String.raw`\s{1,3}(?:de )?(?:tout )?ce (?:que|qui|qu'\p{L}+)`,
    gap(6),
    word("dit|demandé|demande|précède|ordonné|plus haut|auparavant")
  ),
  rule(
    order("olvida|olvide|ignora|ignore|omite|no hagas caso|no haga caso|haz caso omiso|dimentica|esqueça|esquece"),
    String.raw`\s{1,3}(?:a |de |di )?(?:todo |tutto |tudo )?(?:lo que|quello che|quanto|o que)`,
    gap(5),
    word("dijeron|dijo|dicho|pidió|anterior|detto|chiesto|disseram|disse|dito|pediu")
  ),
  rule(
    order("забудь(?:те)?|игнорируй(?:те)?|zapomnij(?:cie)?"),
    String.raw`\s{1,3}(?:о\s|o\s)?(?:вс[её](?:м)?,?\s{1,3}(?:что|о чем)|wszystk(?:o|im),?\s{1,3}co)`,
    gap(5),
    word("говорили|сказали|сказано|раньше|велели|powiedziano|mówiono|wcześniej")
  )
]

const forged: ReadonlyArray<RegExp> = [
  /<\|?(?:im_start|im_end|im_sep|endoftext|start_header_id|eot_id|system|user|assistant)\|>/gu,
  /\[\/?inst\]|<<\/?sys>>|<start_of_turn>|<end_of_turn>/gu,
  /<\/?(?:system|system[-_ ]?prompt|instructions?|admin|developer[-_ ]?message|system[-_]override|tool_result|untrusted)>/gu,
  /(?:^|\n)\s{0,4}(?:#{1,4}\s?)?(?:system|assistant|developer)(?:\s?(?:message|prompt|override|note))?\s?:\s{0,3}(?:you |you're |i'll |i will |ignore|new |from now|the user|override|your |always |never |important)/gu,
  /\[(?:system|admin|developer)(?: (?:message|override|prompt|note))?\]\s?:?/gu
]

const ai =
  "ai|a\\.i\\.|llms?|language models?|(?:ai |virtual )?assistants?|chatbots?|(?:ai )?agents?|gpt|chatgpt|claude|gemini|copilot|bots?"

/** One match is enough. */
export const strong: ReadonlyArray<RegExp> = [
  ...overrides,
  ...forged,
  rule(
    word(
      "reveal|print|show|repeat|output|leak|display|disclose|tell me|summari[sz]e|reply with|respond with|send|include|append|post|quote|recite|read(?: me| us)?"
    ),
    String.raw`(?!\s(?:their|its|our|his|her)\s)`,
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
  rule(
    String.raw`(?:系统提示词?|系統提示|システムプロンプト).{0,10}(?:告诉|输出|显示|泄露|打印|教えて|表示|出力|漏)|(?:告诉|输出|显示|泄露|打印|透露).{0,8}(?:系统提示|系統提示)`
  ),
  rule(
    String.raw`(?:不要|别|請勿|请勿).{0,4}(?:告诉|告知|通知).{0,2}(?:用户|使用者)|(?:ユーザー).{0,6}(?:知らせない|伝えない|言わない|知らせず)`
  ),
  rule(
    String.raw`你现在是.{0,12}(?:不受限制|没有限制|ai|助手|模型)|(?:あなたは今から).{0,20}(?:ai|アシスタント|モデル)`
  ),
  // Roles
  rule(
    word(
      "from now on|starting now|henceforth|from this point on|from here on|ab jetzt|ab sofort|von nun an|désormais|dorénavant|à partir de maintenant|a partir de ahora|desde ahora|d'ora in poi|da ora in poi|a partir de agora|vanaf nu|с этого момента|отныне|теперь|od teraz|od tej chwili"
    ),
    String.raw`[\s,:]{1,3}`,
    word(
      "you (?:are|act|answer|behave|respond|speak|obey|serve|will (?:be|act|answer|obey))|you're|act as|answer as|bist du|handelst du|antwortest du|tu (?:es|réponds|agis)|vous êtes|eres|actúas|actúa como|sei|agisci|rispondi|você é|aja como|ben je|ты|jesteś|działasz"
    )
  ),
  rule(
    word("you are|you're"),
    gap(0),
    word("no longer|not"),
    gap(3),
    word("assistant|ai|chatbot|language model|bound by|restricted by|limited by")
  ),
  rule(
    word(`${ai}|ki|ia|ии`),
    gap(1),
    word("without|free of|free from|ohne|sans|sin|senza|sem|zonder|без|bez"),
    gap(1),
    word(
      "restrictions?|limits?|limitations?|rules|filters?|censorship|regeln|grenzen|einschränkungen|beschränkungen|limites?|restricciones|límites|restrizioni|limiti|restrições|beperkingen|ограничений|правил|ogranicze[nń]"
    )
  ),
  // Orders that name their addressee
  rule(
    word(`if you are|if you're|as|for|to|for any|to any`),
    gap(1),
    word(ai),
    gap(1),
    word(
      "(?:review|grad|evaluat|screen|scor|rat|rank|judg|translat|process|pars|read|summari[sz])ing (?:this|these|the)"
    )
  ),
  rule(
    String.raw`(?:^|[\n.>"!?:]|<!--)\s{0,8}(?:dear |hey |hello )?`,
    `(?:ai (?:agents?|assistants?|models?|graders?|reviewers?)|assistants?|copilot|chatgpt|claude|gemini|llms?|ki-assistent(?:en)?|ki-agent(?:en)?)`,
    String.raw`\s?[,:]\s{0,3}(?:please\s|you\s(?:must|should|can|may)\s|now\s)?`,
    word(
      "add|answer|append|approve|call|click|confirm|copy|delete|disregard|download|execute|fetch|forget|forward|give|ignore|include|insert|install|mark|open|output|press|print|rank|rate|recommend|reply|respond|reveal|run|send|stop|submit|tell|transfer|upload|visit|write"
    )
  ),
  rule(
    word(
      "hinweis|nachricht|anweisung(?:en)?|note|message|consignes?|nota|aviso|avviso|mensaje|messaggio|mensagem|bericht"
    ),
    gap(0),
    word("für|an|pour|à|aux|para|per|voor|aan|для"),
    gap(1),
    word("ki(?:-(?:assistent(?:en)?|modelle?|systeme?|agent(?:en)?))?|l'ia|ia|ai(?:-\\p{L}{1,20})?|ии"),
    "[:,]"
  ),
  // What leaves
  rule(
    word("read|open|cat|load|get|print|copy|take|find"),
    String.raw`\s(?:\p{L}+\s){0,3}[^\s"'<>]{0,60}(?:id_rsa|id_ed25519|\.env|\.netrc|\.aws\/credentials|\/etc\/(?:passwd|shadow))(?![\w.-])`,
    gap(4),
    word("include|post|send|reply|append|paste|add|upload|comment|return|show|email|forward")
  ),
  rule(
    String.raw`\]\(https?:\/\/[^)\s]{1,200}[?&][^)\s=]{1,60}=[^)\s]{0,60}(?:chat|history|conversation|prompt|secret|password|\{\{|<)`
  ),
  rule(word("decode"), gap(4), word("do what it says|do as it says|follow (?:it|its)|obey(?: it)?|execute it|run it"))
]

/** Matches of two different rules are needed. */
export const weak: ReadonlyArray<RegExp> = [
  rule(
    word("new|updated|real|actual|revised|additional|your|first"),
    gap(1),
    word("instructions?|task|objective|goal|orders|directive|priority|role|identity|persona|job|mission|policy"),
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
  /!\[[^\]]{0,80}\]\(https?:\/\/[^)\s]{1,200}[?&][^)\s]{0,60}=[^)\s]{0,200}\)/gu,
  rule(
    word("bypass|skip|disable|turn off|switch off|deactivate|override|circumvent"),
    gap(3),
    word(
      "approvals?|confirmations?|safety(?: checks?| rules?)?|safeguards?|permission checks?|guardrails?|content (?:policy|policies|filters?)|moderation"
    )
  ),
  rule(
    word("the (?:ai |virtual )?(?:agent|assistant|model|llm|ai)"),
    gap(1),
    word("must|has to|shall|needs to|is required to|is allowed to|may now|should now")
  ),
  rule(
    word("output|print|repeat|show|copy|return|write"),
    gap(1),
    word("everything|all(?: the)? text|anything"),
    gap(1),
    word("above|before|preceding|so far")
  ),
  rule(word("verbatim|word for word|in a code block|including hidden|hidden text|encoded in base64"))
]
