"""
What each provider publishes of its requests, as JSON schemas written by hand from its reference.

They hold the members that a chat without server tools may have, and refuse all others: a request with
a member that the provider does not know fails here as it would there.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
NOT_EMPTY = {"type": "string", "minLength": 1}
WHOLE = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
TRUTH = {"type": "boolean"}
ANY_OBJECT = {"type": "object"}
SCHEMA_OBJECT = {"type": "object", "properties": {"type": {"const": "object"}}, "required": ["type"]}
BASE64 = {"type": "string", "pattern": "^[A-Za-z0-9+/]+={0,2}$"}
DATA_URL = {"type": "string", "pattern": "^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$"}
NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
MEDIA_TYPE = {"enum": ["image/png", "image/jpeg", "image/gif", "image/webp"]}


def number(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


def words(*allowed: Any) -> dict[str, Any]:
    return {"enum": list(allowed)}


def many(of: dict[str, Any], least: int = 1, most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": least, **({"maxItems": most} if most else {})}


def either(*ways: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(ways)}


def closed(required: str, **members: dict[str, Any]) -> dict[str, Any]:
    """Give an object with these members and no others; `required` names those it must have."""
    return {
        "type": "object",
        "properties": members,
        "required": required.split(),
        "additionalProperties": False,
    }


FUNCTION = closed("name parameters", name=NAME, description=TEXT, parameters=SCHEMA_OBJECT, strict=TRUTH)
CHAT_TOOL = closed("type function", type=words("function"), function=FUNCTION)
CHAT_TEXT_PART = closed("type text", type=words("text"), text=NOT_EMPTY)
CHAT_IMAGE_PART = closed(
    "type image_url",
    type=words("image_url"),
    image_url=closed("url", url=DATA_URL, detail=words("auto", "low", "high")),
)
CHAT_MESSAGE = either(
    closed("role content", role=words("system", "assistant"), content=TEXT),
    closed("role content", role=words("user"), content=either(TEXT, many(either(CHAT_TEXT_PART, CHAT_IMAGE_PART)))),
)
CHAT_FORMAT = closed(
    "type json_schema",
    type=words("json_schema"),
    json_schema=closed("name schema", name=NAME, description=TEXT, schema=ANY_OBJECT, strict=TRUTH),
)
_CHAT: dict[str, dict[str, Any]] = {
    "model": NOT_EMPTY,
    "messages": many(CHAT_MESSAGE),
    "stream": words(True),
    "stream_options": closed("", include_usage=TRUTH, include_obfuscation=TRUTH),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_tokens": POSITIVE,
    "max_completion_tokens": POSITIVE,
    "seed": WHOLE,
    "stop": either(TEXT, many(NOT_EMPTY, most=4)),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "reasoning_effort": words("none", "minimal", "low", "medium", "high", "xhigh"),
    "tools": many(CHAT_TOOL),
    "response_format": CHAT_FORMAT,
}


def _chat(without: str = "", required: str = "model messages stream", **others: dict[str, Any]) -> dict[str, Any]:
    members = {name: schema for name, schema in _CHAT.items() if name not in without.split()}
    return closed(required, **members, **others)


_ANTHROPIC = closed(
    "model messages max_tokens stream",
    model=NOT_EMPTY,
    messages=many(
        closed(
            "role content",
            role=words("user", "assistant"),
            content=either(
                TEXT,
                many(
                    either(
                        CHAT_TEXT_PART,
                        closed(
                            "type source",
                            type=words("image"),
                            source=closed(
                                "type media_type data", type=words("base64"), media_type=MEDIA_TYPE, data=BASE64
                            ),
                        ),
                    )
                ),
            ),
        )
    ),
    max_tokens=POSITIVE,
    stream=words(True),
    system=NOT_EMPTY,
    temperature=number(0, 1),
    top_p=number(0, 1),
    stop_sequences=many(NOT_EMPTY),
    thinking=either(
        closed("type", type=words("disabled")),
        closed("type", type=words("adaptive"), display=words("summarized", "omitted")),
    ),
    output_config=closed(
        "",
        effort=words("low", "medium", "high", "xhigh", "max"),
        format=closed("type schema", type=words("json_schema"), schema=ANY_OBJECT),
    ),
    tools=many(closed("name input_schema", name=NAME, description=TEXT, input_schema=SCHEMA_OBJECT)),
)
_INVOKE = {
    **_ANTHROPIC,
    "properties": {
        **{name: schema for name, schema in _ANTHROPIC["properties"].items() if name not in ("model", "stream")},
        "anthropic_version": words("bedrock-2023-05-31"),
    },
    "required": ["anthropic_version", "messages", "max_tokens"],
}
_RESPONSES = closed(
    "model input stream store",
    model=NOT_EMPTY,
    input=many(
        closed(
            "role content",
            role=words("system", "user", "assistant"),
            content=either(
                TEXT,
                many(
                    either(
                        closed("type text", type=words("input_text"), text=NOT_EMPTY),
                        closed(
                            "type image_url detail",
                            type=words("input_image"),
                            image_url=DATA_URL,
                            detail=words("auto", "low", "high"),
                        ),
                    )
                ),
            ),
        )
    ),
    stream=words(True),
    store=TRUTH,
    background=TRUTH,
    temperature=number(0, 2),
    top_p=number(0, 1),
    max_output_tokens=POSITIVE,
    reasoning=closed(
        "",
        effort=words("none", "minimal", "low", "medium", "high", "xhigh"),
        summary=words("auto", "concise", "detailed"),
    ),
    tools=many(
        closed(
            "type name parameters strict",
            type=words("function"),
            name=NAME,
            description=TEXT,
            parameters=SCHEMA_OBJECT,
            strict=TRUTH,
        )
    ),
    text=closed(
        "format",
        format=closed("type name schema", type=words("json_schema"), name=NAME, schema=ANY_OBJECT, strict=TRUTH),
    ),
)
_GEMINI_PART = either(
    closed("text", text=TEXT),
    closed("inlineData", inlineData=closed("mimeType data", mimeType=MEDIA_TYPE, data=BASE64)),
)
_GEMINI = closed(
    "contents",
    contents=many(closed("role parts", role=words("user", "model"), parts=many(_GEMINI_PART))),
    systemInstruction=closed("parts", role=TEXT, parts=many(_GEMINI_PART)),
    tools=many(
        closed(
            "functionDeclarations",
            functionDeclarations=many(
                closed("name", name=NAME, description=TEXT, parameters=ANY_OBJECT, parametersJsonSchema=SCHEMA_OBJECT)
            ),
        )
    ),
    generationConfig=closed(
        "",
        temperature=number(0, 2),
        topP=number(0, 1),
        maxOutputTokens=POSITIVE,
        seed=WHOLE,
        stopSequences=many(NOT_EMPTY, most=5),
        presencePenalty=number(-2, 2),
        frequencyPenalty=number(-2, 2),
        responseMimeType=words("application/json", "text/plain"),
        responseJsonSchema=ANY_OBJECT,
        thinkingConfig=closed(
            "", includeThoughts=TRUTH, thinkingBudget=WHOLE, thinkingLevel=words("minimal", "low", "medium", "high")
        ),
    ),
)
_INTERACTIONS_CONTENT = either(
    closed("type text", type=words("text"), text=NOT_EMPTY),
    closed("type data mime_type", type=words("image"), data=BASE64, mime_type=MEDIA_TYPE),
)
_INTERACTIONS = closed(
    "model input stream",
    model=NOT_EMPTY,
    input=many(closed("type content", type=words("user_input", "model_output"), content=many(_INTERACTIONS_CONTENT))),
    stream=words(True),
    store=TRUTH,
    system_instruction=NOT_EMPTY,
    tools=many(closed("type name", type=words("function"), name=NAME, description=TEXT, parameters=SCHEMA_OBJECT)),
    response_format=closed(
        "type", type=words("text"), mime_type=words("application/json", "text/plain"), schema=ANY_OBJECT
    ),
    generation_config=closed(
        "",
        temperature=number(0, 2),
        top_p=number(0, 1),
        max_output_tokens=POSITIVE,
        seed=WHOLE,
        stop_sequences=many(NOT_EMPTY),
        thinking_level=words("minimal", "low", "medium", "high", "xhigh"),
        thinking_summaries=words("auto", "none"),
    ),
)
_OLLAMA = closed(
    "model messages stream",
    model=NOT_EMPTY,
    messages=many(closed("role content", role=words("system", "user", "assistant"), content=TEXT, images=many(BASE64))),
    stream=words(True),
    think=either(TRUTH, words("low", "medium", "high")),
    format=either(words("json"), ANY_OBJECT),
    tools=many(CHAT_TOOL),
    options=closed(
        "",
        temperature=number(0, 2),
        top_p=number(0, 1),
        num_predict=POSITIVE,
        seed=WHOLE,
        stop=many(NOT_EMPTY),
        presence_penalty=number(-2, 2),
        frequency_penalty=number(-2, 2),
    ),
)
_COHERE = closed(
    "model messages stream",
    model=NOT_EMPTY,
    messages=many(CHAT_MESSAGE),
    stream=words(True),
    temperature=number(0, 2),
    p=number(0, 1),
    max_tokens=POSITIVE,
    seed=WHOLE,
    stop_sequences=many(NOT_EMPTY, most=5),
    presence_penalty=number(0, 1),
    frequency_penalty=number(0, 1),
    tools=many(CHAT_TOOL),
    response_format=closed("type", type=words("json_object"), json_schema=ANY_OBJECT),
)
_BEDROCK = closed(
    "messages",
    messages=many(
        closed(
            "role content",
            role=words("user", "assistant"),
            content=many(
                either(
                    closed("text", text=NOT_EMPTY),
                    closed(
                        "image",
                        image=closed(
                            "format source",
                            format=words("png", "jpeg", "gif", "webp"),
                            source=closed("bytes", bytes=BASE64),
                        ),
                    ),
                )
            ),
        )
    ),
    system=many(closed("text", text=NOT_EMPTY)),
    inferenceConfig=closed(
        "", temperature=number(0, 1), topP=number(0, 1), maxTokens=POSITIVE, stopSequences=many(NOT_EMPTY)
    ),
    toolConfig=closed(
        "tools",
        tools=many(
            closed(
                "toolSpec",
                toolSpec=closed(
                    "name inputSchema", name=NAME, description=NOT_EMPTY, inputSchema=closed("json", json=SCHEMA_OBJECT)
                ),
            )
        ),
    ),
    outputConfig=closed(
        "textFormat",
        textFormat=closed(
            "type structure",
            type=words("json_schema"),
            structure=closed("jsonSchema", jsonSchema=closed("schema", name=TEXT, description=TEXT, schema=NOT_EMPTY)),
        ),
    ),
)
_LLAMACPP = closed(
    "prompt stream",
    prompt=many(WHOLE, least=0),
    stream=words(True),
    return_tokens=TRUTH,
    return_progress=TRUTH,
    cache_prompt=TRUTH,
    temperature=number(0, 2),
    top_p=number(0, 1),
    top_k=WHOLE,
    min_p=number(0, 1),
    repeat_penalty=number(0, 2),
    n_predict=POSITIVE,
    seed=WHOLE,
    stop=many(NOT_EMPTY),
    presence_penalty=number(-2, 2),
    frequency_penalty=number(-2, 2),
    json_schema=ANY_OBJECT,
)
# By adapter; relatives of Chat Completions with a dash behind it.
SCHEMAS: dict[str, dict[str, Any]] = {
    "openai_chat": _chat(),
    "openai_chat-openai": _chat("max_tokens"),
    "openai_chat-groq": _chat("max_tokens"),
    "openai_chat-deepseek": _chat("seed reasoning_effort response_format max_completion_tokens"),
    "openai_chat-mistral": _chat("seed stream_options reasoning_effort max_completion_tokens", random_seed=WHOLE),
    "openai_chat-perplexity": _chat("seed stop tools max_completion_tokens"),
    "openai_chat-xai": _chat(),
    "azure": _chat("max_tokens"),
    "openai_responses": _RESPONSES,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "gemini_interactions": _INTERACTIONS,
    "ollama": _OLLAMA,
    "cohere": _COHERE,
    "bedrock": _BEDROCK,
    "bedrock_invoke": _INVOKE,
    "llamacpp": _LLAMACPP,
}
