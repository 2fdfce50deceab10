/** Every element of the page. Those that others depend on are defined first. */

import { AnswerBody } from "./elements/answer-body.js";
import { ChatComposer } from "./elements/chat-composer.js";
import { ChatPane } from "./elements/chat-pane.js";
import { ChatTurn } from "./elements/chat-turn.js";
import { ConnectionStatus } from "./elements/connection-status.js";
import { ConversationList } from "./elements/conversation-list.js";
import { ConversationMenu } from "./elements/conversation-menu.js";
import { ConversationView } from "./elements/conversation-view.js";
import { LiveAnnouncer } from "./elements/live-announcer.js";
import { NewConversation } from "./elements/new-conversation.js";
import { PanePicker } from "./elements/pane-picker.js";
import { PaneSwitcher } from "./elements/pane-switcher.js";

const ELEMENTS = {
  "live-announcer": LiveAnnouncer,
  "connection-status": ConnectionStatus,
  "conversation-list": ConversationList,
  "pane-switcher": PaneSwitcher,
  "pane-picker": PanePicker,
  "chat-composer": ChatComposer,
  "answer-body": AnswerBody,
  "chat-pane": ChatPane,
  "chat-turn": ChatTurn,
  "conversation-menu": ConversationMenu,
  "new-conversation": NewConversation,
  "conversation-view": ConversationView,
};

for (const [name, element] of Object.entries(ELEMENTS)) customElements.define(name, element);
