package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class MailTest {
    @Test
    void headersGoAndTheTextStays() {
        assertThat(Mail.read("""
            From anna@example.org Thu Aug 22 12:36:23 2002
            Received: from a.example.org
            \tby b.example.org
            From: Anna <anna@example.org>
            Subject: =?iso-8859-1?q?Caf=E9_at?= =?utf-8?b?IG5vb24=?=

            See you there.
            From my window I see it.
            """))
                .isEqualTo("Anna <anna@example.org>\nCafé at noon\nSee you there.\nFrom my window I see it.");
    }

    @Test
    void encodingsAndTagsAreUndone() {
        assertThat(Mail.read("""
            From: shop
            Subject: Sale
            Content-Type: text/html; charset="iso-8859-1"
            Content-Transfer-Encoding: quoted-printable

            <HTML><style>p {color: red}</style><!-- hidden --><p align=3D"left">Only 5=80 =
            today &amp; tomorrow</p></HTML>
            """)).isEqualTo("shop\nSale\nOnly 5\u0080 today & tomorrow");
        assertThat(Mail.read("""
            Subject: x
            Content-Transfer-Encoding: BASE64

            SGVs
            bG8=
            """)).isEqualTo("x\nHello");
    }

    @Test
    void ofAlternativesTheFirstIsRead() {
        String mail = """
            Subject: x
            Content-Type: multipart/%s;
             boundary="=_b"

            preamble
            --=_b
            Content-Type: text/plain

            one
            --=_b
            Content-Type: text/html

            <b>two</b>
            --=_b
            Content-Type: image/png

            three
            --=_b--
            epilogue
            """;
        assertThat(Mail.read(mail.formatted("alternative"))).isEqualTo("x\none");
        assertThat(Mail.read(mail.formatted("mixed"))).isEqualTo("x\none\ntwo");
    }

    @Test
    void whatIsNoMailIsText() {
        assertThat(Mail.read("You have won!\nCall now: 555")).isEqualTo("You have won!\nCall now: 555");
        assertThat(Mail.read("")).isEmpty();
    }
}
